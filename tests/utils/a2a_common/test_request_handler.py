from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from a2a.client import Client
from a2a.server.context import ServerCallContext
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageConfiguration,
    StreamResponse,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from ai_platform_engineering.events import FinalResult, TextDelta, ToolStarted
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.event_log import Snapshot
from ai_platform_engineering.utils.a2a_common.delegation import Delegations
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.wire import seq_of
from ai_platform_engineering.utils.keys import Key
from tests.utils.a2a_common.scripted_executor import ANSWER, FORM, Gate, Script
from tests.utils.a2a_common.serving import TRANSPORTS, message_0_3, request, serving, until

LAST = len(ANSWER) + 2
"""The number of the last event of a run that answers: one status before the answer and one behind it."""

every_transport = pytest.mark.parametrize(("version", "binding"), TRANSPORTS)


async def collect(stream: AsyncIterator[StreamResponse]) -> list[StreamResponse]:
    async with asyncio.timeout(90):
        return [item async for item in stream]


async def answer_to(client: Client, text: str, **fields: Any) -> list[StreamResponse]:
    return await collect(client.send_message(request(text, **fields)))


def numbers(items: list[StreamResponse]) -> list[int | None]:
    return [seq_of(item.status_update if item.HasField("status_update") else item.artifact_update) for item in items]


def asks_first(text: str, turn: int) -> Script:
    return [FORM] if turn == 0 else ANSWER


@every_transport
async def test_a_stream_is_the_submitted_task_and_every_event(version: str, binding: str) -> None:
    async with serving() as served:
        items = await answer_to(served.client(version, binding), "hello")

        assert items[0].task.status.state == TaskState.TASK_STATE_SUBMITTED
        assert items[0].task.history[0].parts[0].text == "hello"
        assert numbers(items[1:]) == list(range(1, LAST + 1))
        assert items[1].status_update.status.state == TaskState.TASK_STATE_WORKING
        assert items[-2].artifact_update.artifact.name == "final_result"
        assert items[-2].artifact_update.artifact.parts[0].text == "Version 2.11 🔧"
        assert items[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.parametrize("delegated", [False, True])
async def test_a_supervisor_gets_the_task_with_the_first_events_and_others_get_it_at_once(
    delegated: bool,
) -> None:
    gate = Gate()
    key = "key-of-all-the-agents"
    async with serving(lambda text, turn: [gate, *ANSWER], agent="argocd", A2A_AGENTS_AUTH_KEY=key) as served:
        params = request("hello")
        params.message.metadata.update({"delegated": delegated})
        Delegations(load_settings({}, None), Key("", key)).sign(params.message)
        stream = served.handler.stream_message(params, ServerCallContext())
        async with asyncio.timeout(90):
            first = await anext(stream)
            gate.set()
            rest = [item async for items in stream for item in items]
        assert isinstance(first[0], Snapshot)
        assert [item.seq for item in first] == ([0, 1] if delegated else [0])
        assert [item.seq for item in [*first, *rest]] == list(range(LAST + 1))


@every_transport
async def test_a_task_can_be_read_while_it_runs_and_after(version: str, binding: str) -> None:
    gate = Gate()
    async with serving(lambda text, turn: [*ANSWER[:3], gate, *ANSWER[3:]]) as served:
        client = served.client(version, binding)
        stream = client.send_message(request("hello"))
        task_id = (await anext(stream)).task.id
        while (await anext(stream)).artifact_update.artifact.name != "streaming_result":
            pass

        running = await client.get_task(GetTaskRequest(id=task_id))
        assert running.status.state == TaskState.TASK_STATE_WORKING
        assert running.artifacts[-1].parts[0].text == "Version "
        gate.set()
        await collect(stream)
        done = await client.get_task(GetTaskRequest(id=task_id))
        assert done.status.state == TaskState.TASK_STATE_COMPLETED
        assert [artifact.name for artifact in done.artifacts][-2:] == ["streaming_result", "final_result"]
        assert [part.text for part in done.artifacts[-2].parts] == ["Version 2.11 🔧"]


@every_transport
async def test_sending_waits_for_the_answer(version: str, binding: str) -> None:
    async with serving() as served:
        client = served.client(version, binding)
        client._config.streaming = False
        (item,) = await answer_to(client, "hello")
        assert item.task.status.state == TaskState.TASK_STATE_COMPLETED
        assert item.task.artifacts[-1].name == "final_result"
        assert item.task.history[0].parts[0].text == "hello"


async def test_sending_without_waiting_gives_the_submitted_task() -> None:
    gate = Gate()
    async with serving(lambda text, turn: [gate, *ANSWER]) as served:
        answer = await served.rpc("message/send", message_0_3("hello") | {"configuration": {"blocking": False}})
        task = answer["result"]
        assert task["status"]["state"] == "submitted"
        gate.set()
        await served.all_events("tasks/resubscribe", {"id": task["id"]})
        done = await served.rpc("tasks/get", {"id": task["id"]})
        assert done["result"]["status"]["state"] == "completed"


async def test_only_as_much_history_as_was_asked_for() -> None:
    async with serving(asks_first) as served:
        asked = await served.rpc("message/send", message_0_3("hello"))
        task_id = asked["result"]["id"]
        await served.rpc("message/send", message_0_3("guestbook", taskId=task_id, messageId="m-2"))
        whole = await served.rpc("tasks/get", {"id": task_id})
        said = [part["text"] for entry in whole["result"]["history"] for part in entry["parts"]]
        assert said == ["hello", "Which app?", "guestbook"]
        last = await served.rpc("tasks/get", {"id": task_id, "historyLength": 1})
        assert [entry["messageId"] for entry in last["result"]["history"]] == ["m-2"]


@every_transport
async def test_the_answer_to_a_question_goes_on_where_it_stopped(version: str, binding: str) -> None:
    async with serving(asks_first) as served:
        client = served.client(version, binding)
        asked = await answer_to(client, "hello")
        assert asked[-1].status_update.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert numbers(asked[1:]) == [1, 2, 3]

        # Without a context id: it is the task's.
        answered = await answer_to(client, "guestbook", task_id=asked[0].task.id)
        contexts = {item.status_update.context_id or item.artifact_update.context_id for item in answered[1:]}
        assert contexts == {answered[0].task.context_id} == {asked[0].task.context_id}
        assert numbers(answered[1:]) == list(range(4, 4 + LAST))
        assert answered[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


async def test_answering_without_waiting_shows_that_the_answer_was_taken() -> None:
    gate = Gate()
    async with serving(lambda text, turn: [FORM] if turn == 0 else [gate, *ANSWER]) as served:
        asked = await served.rpc("message/send", message_0_3("hello"))
        answered = await served.rpc(
            "message/send",
            message_0_3("guestbook", taskId=asked["result"]["id"]) | {"configuration": {"blocking": False}},
        )
        assert answered["result"]["status"]["state"] == "working"
        gate.set()


async def test_two_answers_at_once_are_worked_on_one_after_the_other() -> None:
    gate = Gate()
    scripts: dict[int, Script] = {0: [FORM], 1: [gate, FORM], 2: ANSWER}
    async with serving(lambda text, turn: scripts[turn]) as served:
        task_id = (await served.rpc("message/send", message_0_3("hello")))["result"]["id"]
        first = asyncio.create_task(
            served.all_events("message/stream", message_0_3("one", taskId=task_id, messageId="m-2"))
        )
        await until(lambda: served.executor.running)
        async with served.events("message/stream", message_0_3("two", taskId=task_id, messageId="m-3")) as events:
            await anext(events)
            gate.set()
            second = [event async for event in events]

        assert (await first)[-1][1]["status"]["state"] == "input-required"
        assert second[-1][1]["status"]["state"] == "completed"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"task_id": "no-such-task"}, TaskNotFoundError),
        ({"task_id": "ended"}, UnsupportedOperationError),
        ({"task_id": "open", "context_id": "another"}, A2AError),
    ],
)
@pytest.mark.parametrize(("version", "binding"), [("0.3", "JSONRPC"), ("1.0", "JSONRPC"), ("1.0", "HTTP+JSON")])
async def test_messages_no_task_takes(
    version: str, binding: str, fields: dict[str, str], error: type[A2AError]
) -> None:
    async with serving(lambda text, turn: [FORM] if text == "ask" else ANSWER) as served:
        client = served.client(version, binding)
        tasks = {
            "open": (await answer_to(client, "ask"))[0].task.id,
            "ended": (await answer_to(client, "hello"))[0].task.id,
        }
        named = {key: tasks.get(value, value) for key, value in fields.items()}
        with pytest.raises(error) as raised:
            await answer_to(client, "more", **named)
        assert named["task_id"] not in str(raised.value)


async def test_a_refused_message_leaves_no_trace() -> None:
    async with serving(asks_first) as served:
        asked = (await served.rpc("message/send", message_0_3("hello")))["result"]
        answer = await served.rpc("message/send", message_0_3("x", taskId=asked["id"], contextId="another"))
        assert answer["error"]["code"] == -32602
        assert (await served.rpc("tasks/get", {"id": asked["id"]}))["result"] == asked


@pytest.mark.parametrize("parts", [[], [{"kind": "text", "text": ""}], [{"kind": "text", "text": " \n"}]])
async def test_a_message_says_something(parts: list[Any]) -> None:
    async with serving() as served:
        for method in ("message/send", "message/stream"):
            answer = await served.rpc(method, message_0_3("", parts=parts))
            assert answer["error"]["code"] == -32602
            assert "parts" in answer["error"]["message"]
        assert (await served.rpc("ListTasks", {}))["result"]["totalSize"] == 0


async def test_a_client_that_leaves_does_not_stop_the_run() -> None:
    gate = Gate()
    async with serving(lambda text, turn: [*ANSWER[:2], gate, *ANSWER[2:]]) as served:
        async with served.events("message/stream", message_0_3("hello")) as events:
            _, task = await anext(events)
        gate.set()
        await served.all_events("tasks/resubscribe", {"id": task["id"]})
        done = await served.rpc("tasks/get", {"id": task["id"]})
        assert done["result"]["status"]["state"] == "completed"


@every_transport
async def test_a_running_task_is_canceled_promptly(version: str, binding: str) -> None:
    async with serving(lambda text, turn: [*ANSWER[:2], Gate()]) as served:
        client = served.client(version, binding)
        stream = client.send_message(request("hello"))
        task_id = (await anext(stream)).task.id
        await until(lambda: served.executor.running)

        began = time.perf_counter()
        canceled = await client.cancel_task(CancelTaskRequest(id=task_id))
        assert time.perf_counter() - began < 30
        assert canceled.status.state == TaskState.TASK_STATE_CANCELED
        rest = await collect(stream)
        assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED
        assert numbers(rest) == list(range(1, len(rest) + 1))
        assert not served.executor.running


async def test_a_task_that_waits_for_an_answer_is_canceled_also_when_nothing_is_left_of_it() -> None:
    async with serving(asks_first) as served:
        for wait in (False, True):
            asked = (await served.rpc("message/send", message_0_3("hello")))["result"]
            if wait:
                await until(lambda: not served.handler.work)
            answer = await served.rpc("tasks/cancel", {"id": asked["id"]})
            assert answer["result"]["status"]["state"] == "canceled"
            events = await served.all_events("tasks/resubscribe", {"id": asked["id"]}, Last_Event_ID="0")
            assert [event["status"]["state"] for _, event in events if "status" in event][-1] == "canceled"
            assert events[-1][1]["metadata"]["event"] == "canceled"


async def test_an_answer_finds_its_task_also_when_nothing_is_left_of_it() -> None:
    async with serving(asks_first) as served:
        asked = (await served.rpc("message/send", message_0_3("hello")))["result"]
        await until(lambda: not served.handler.work)
        answered = await served.rpc("message/send", message_0_3("guestbook", taskId=asked["id"], messageId="m-2"))
        assert answered["result"]["status"]["state"] == "completed"


async def test_tasks_that_cannot_be_canceled() -> None:
    async with serving() as served:
        client = served.client("1.0", "JSONRPC")
        task_id = (await answer_to(client, "hello"))[0].task.id
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=task_id))
        with pytest.raises(TaskNotFoundError):
            await client.cancel_task(CancelTaskRequest(id="no-such-task"))


async def test_a_task_canceled_before_it_began_has_an_end_in_the_log() -> None:
    async with serving() as served:
        context = ServerCallContext()
        accepted = await served.handler.accept(request("hello"), context)
        # No turn of the loop has passed, so the executor has not been called yet.
        async with asyncio.timeout(90):
            task = await served.handler.on_cancel_task(CancelTaskRequest(id=accepted.snapshot.task.id), context)
        assert task.status.state == TaskState.TASK_STATE_CANCELED
        entries = [entry async for entries in served.log.follow(task.id) for entry in entries]
        assert entries[-1].event.metadata["event"] == "canceled"


async def test_a_run_that_raises_still_ends() -> None:
    script = [ToolStarted("supervisor", "t", "c"), RuntimeError("secret detail")]
    async with serving(lambda text, turn: script) as served:
        events = await served.all_events("message/stream", message_0_3("hello"))
        last = events[-1][1]
        assert last["status"]["state"] == "failed"
        assert last["metadata"]["error_code"] == "internal_error"
        assert last["status"]["message"]["parts"][0]["text"]
        assert "secret detail" not in str(events)
        task = await served.rpc("tasks/get", {"id": events[0][1]["id"]})
        assert task["result"]["status"]["state"] == "failed"
        await until(lambda: not served.handler.work)


async def test_many_conversations_at_once_keep_to_themselves() -> None:
    def script(text: str, turn: int) -> Script:
        return [TextDelta("supervisor", "m", text), FinalResult(text, "m")]

    async with serving(script) as served:
        streams = await asyncio.gather(
            *(served.all_events("message/stream", message_0_3(f"token-{number}-")) for number in range(32))
        )
        for number, events in enumerate(streams):
            assert [seq for seq, _ in events] == [0, 1, 2, 3, 4]
            found = {token for token in range(32) if f"token-{token}-" in str(events)}
            assert found == {number}


async def test_listing_tasks_by_conversation_state_and_page() -> None:
    async with serving(lambda text, turn: [FORM] if text == "ask" else ANSWER) as served:
        client = served.client("1.0", "JSONRPC")
        for number in range(5):
            await answer_to(client, "hello", context_id=f"c{number % 2}")
        await answer_to(client, "ask", context_id="c0")

        assert (await client.list_tasks(ListTasksRequest())).total_size == 6
        assert (await client.list_tasks(ListTasksRequest(context_id="c1"))).total_size == 2
        waiting = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_INPUT_REQUIRED))
        assert [task.context_id for task in waiting.tasks] == ["c0"]
        assert not waiting.tasks[0].artifacts
        seen: list[str] = []
        token = ""
        while True:
            page = await client.list_tasks(ListTasksRequest(page_size=4, page_token=token))
            seen += [task.id for task in page.tasks]
            token = page.next_page_token
            if not token:
                break
        assert len(seen) == len(set(seen)) == 6


async def test_finished_tasks_are_let_go_of() -> None:
    async with serving(EVENT_LOG_MAX_TASKS="2") as served:
        ids = [(await served.rpc("message/send", message_0_3("hello")))["result"]["id"] for _ in range(3)]
        assert (await served.rpc("tasks/get", {"id": ids[0]}))["error"]["code"] == -32001
        assert (await served.rpc("tasks/get", {"id": ids[2]}))["result"]["status"]["state"] == "completed"
        await until(lambda: not served.handler.work)


async def test_streaming_configuration_limits_the_history_of_the_opening_task() -> None:
    async with serving() as served:
        sent = request("hello")
        sent.configuration.CopyFrom(SendMessageConfiguration(history_length=0))
        items = await collect(served.client("1.0", "JSONRPC").send_message(sent))
        assert items[0].task.status.state == TaskState.TASK_STATE_SUBMITTED
        assert not items[0].task.history
        assert items[-1].status_update.status.state in TERMINAL_STATES


async def test_a_message_to_a_conversation_that_is_being_deleted_waits_and_begins_it_anew() -> None:
    async with serving() as served:
        client = served.client("1.0", "JSONRPC")
        (first, *_) = await answer_to(client, "hello", context_id="c")
        async with served.handler.work.paused("c"):
            stream = client.send_message(request("again", context_id="c"))
            second = (await anext(stream)).task
            assert await served.log.delete_conversation("c") == 1
            assert await served.log.state(second.id) == TaskState.TASK_STATE_SUBMITTED
        items = await collect(stream)
        assert items[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        assert await served.log.task(first.task.id) is None
        assert len(served.handler.work) == 0
