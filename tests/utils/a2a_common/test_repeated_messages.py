"""A message that its client sends again, because it does not know whether it arrived: the work is done once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_platform_engineering.utils.a2a_common.protocol import accepts_once
from ai_platform_engineering.utils.a2a_common.server.a2a_server import agent_card
from tests.utils.a2a_common.scripted_executor import ANSWER, FORM, Gate, Script
from tests.utils.a2a_common.serving import TRANSPORTS, Served, serving, until

LAST = len(ANSWER) + 2

every_transport = pytest.mark.parametrize("transport", TRANSPORTS, ids="-".join)


def body(transport: tuple[str, str], text: str, message_id: str, **fields: Any) -> dict[str, Any]:
    match transport:
        case ("0.3", "JSONRPC"):
            return {"message": {"role": "user", "messageId": message_id, "parts": [_part_0_3(text)], **fields}}
        case ("0.3", _):
            return {"request": {"role": "ROLE_USER", "messageId": message_id, "content": [{"text": text}], **fields}}
        case _:
            return {"message": {"role": "ROLE_USER", "messageId": message_id, "parts": [{"text": text}], **fields}}


def _part_0_3(text: str) -> dict[str, str]:
    return {"kind": "text", "text": text}


async def streamed(
    served: Served, transport: tuple[str, str], text: str, message_id: str = "m", **fields: Any
) -> list[tuple[int, Any]]:
    sent = body(transport, text, message_id, **fields)
    match transport:
        case ("0.3", "JSONRPC"):
            return await served.all_events("message/stream", sent)
        case ("1.0", "JSONRPC"):
            return await served.all_events("SendStreamingMessage", sent)
        case (version, _):
            path = "/v1/message:stream" if version == "0.3" else "/message:stream"
            return await served.rest_events("POST", path, sent)


async def answered(
    served: Served, transport: tuple[str, str], text: str, message_id: str = "m", **fields: Any
) -> dict[str, Any]:
    """The task, or the error, of a message that is sent without streaming."""
    sent = body(transport, text, message_id, **fields)
    match transport:
        case ("0.3", "JSONRPC"):
            answer = await served.rpc("message/send", sent)
        case ("1.0", "JSONRPC"):
            answer = await served.rpc("SendMessage", sent)
        case (version, _):
            path = "/v1/message:send" if version == "0.3" else "/message:send"
            answer = (await served.http.post(served.url + path, json=sent)).json()
    found = answer.get("result", answer)
    return found.get("task", found)


def task_of(events: list[tuple[int, Any]]) -> dict[str, Any]:
    _, first = events[0]
    return first.get("task", first)


def state_of(task: dict[str, Any]) -> str:
    return task["status"]["state"].removeprefix("TASK_STATE_").lower()


class Runs:
    """The texts for which a run was started."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = scripts or (ANSWER,)
        self.texts: list[str] = []

    def __call__(self, text: str, turn: int) -> Script:
        self.texts.append(text)
        return self._scripts[turn]


@every_transport
async def test_a_message_sent_again_gives_the_same_task_and_the_same_events(transport: tuple[str, str]) -> None:
    runs = Runs()
    async with serving(runs) as served:
        first = await streamed(served, transport, "hello", contextId="c")
        again = await streamed(served, transport, "hello", contextId="c")
        blocking = await answered(served, transport, "hello", contextId="c")

    assert [seq for seq, _ in again] == list(range(LAST + 1))
    assert again == first
    assert state_of(task_of(again)) == "submitted"
    assert (blocking["id"], state_of(blocking)) == (task_of(first)["id"], "completed")
    assert runs.texts == ["hello"]


@every_transport
async def test_a_message_sent_again_during_its_run_joins_it(transport: tuple[str, str]) -> None:
    gate = Gate()
    runs = Runs([*ANSWER[:2], gate, *ANSWER[2:]])
    async with serving(runs) as served:
        first = asyncio.create_task(streamed(served, transport, "hello", contextId="c"))
        await asyncio.wait_for(served.heard.wait(), 90)
        served.heard.clear()
        again = asyncio.create_task(streamed(served, transport, "hello", contextId="c"))
        await asyncio.wait_for(served.heard.wait(), 90)
        gate.set()
        assert await again == await first
    assert runs.texts == ["hello"]


async def test_messages_that_arrive_at_the_same_time_start_one_run() -> None:
    runs = Runs()
    async with serving(runs) as served:
        streams = await asyncio.gather(
            *(streamed(served, ("1.0", "JSONRPC"), "hello", contextId="c") for _ in range(8))
        )
    assert len({task_of(events)["id"] for events in streams}) == 1
    assert runs.texts == ["hello"]


@every_transport
@pytest.mark.parametrize("names_context", [True, False])
async def test_an_answer_sent_again_is_added_once_and_followed_from_its_place(
    transport: tuple[str, str], names_context: bool
) -> None:
    runs = Runs([FORM], ANSWER)
    async with serving(runs) as served:
        asked = task_of(await streamed(served, transport, "hello", contextId="c"))
        fields = {"taskId": asked["id"]} | ({"contextId": "c"} if names_context else {})
        first = await streamed(served, transport, "guestbook", "m-2", **fields)
        again = await streamed(served, transport, "guestbook", "m-2", **fields)
        task = await answered(served, transport, "guestbook", "m-2", **fields)
    assert [seq for seq, _ in again] == list(range(3, 3 + LAST + 1))
    assert again[1:] == first[1:]
    assert [entry["messageId"] for entry in task["history"] if entry["role"].lower().endswith("user")] == ["m", "m-2"]
    assert runs.texts == ["hello", "guestbook"]


async def test_a_question_sent_again_while_its_form_is_open_is_no_answer_to_it() -> None:
    runs = Runs([FORM], ANSWER)
    async with serving(runs) as served:
        first = await streamed(served, ("1.0", "JSONRPC"), "hello", contextId="c")
        again = await streamed(served, ("1.0", "JSONRPC"), "hello", contextId="c")
    assert again == first
    assert runs.texts == ["hello"]


async def test_an_answer_to_the_conversation_is_recognized_without_its_task() -> None:
    runs = Runs([FORM], ANSWER)
    async with serving(runs) as served:
        await streamed(served, ("1.0", "JSONRPC"), "hello", contextId="c")
        first = await streamed(served, ("1.0", "JSONRPC"), "app: guestbook", "m-2", contextId="c")
        again = await streamed(served, ("1.0", "JSONRPC"), "app: guestbook", "m-2", contextId="c")
    assert again[1:] == first[1:]
    assert runs.texts == ["hello", "app: guestbook"]


@every_transport
async def test_an_id_that_was_used_for_another_message_is_an_error(transport: tuple[str, str]) -> None:
    runs = Runs()
    async with serving(runs) as served:
        await streamed(served, transport, "hello", contextId="c")
        refused = await answered(served, transport, "something else", contextId="c")
    assert "messageId: was used for another message" in refused["error"]["message"]
    assert refused["error"]["code"] in {-32602, 400}
    assert runs.texts == ["hello"]


async def test_an_id_that_was_used_in_another_task_is_an_error() -> None:
    runs = Runs([FORM])
    async with serving(runs) as served:
        first = task_of(await streamed(served, ("1.0", "JSONRPC"), "hello", contextId="c"))
        await served.rpc("CancelTask", {"id": first["id"]})
        second = task_of(await streamed(served, ("1.0", "JSONRPC"), "hello", "m-2", contextId="c"))
        refused = await answered(served, ("1.0", "JSONRPC"), "hello", contextId="c", taskId=second["id"])
    assert refused["error"]["code"] == -32602


async def test_the_same_id_in_other_conversations_and_without_one_is_a_new_message() -> None:
    runs = Runs()
    async with serving(runs) as served:
        for fields in ({"contextId": "c"}, {"contextId": "d"}, {}, {}):
            await streamed(served, ("1.0", "JSONRPC"), "hello", **fields)
    assert runs.texts == ["hello"] * 4


async def test_a_message_sent_again_without_waiting_gives_the_task_as_it_is() -> None:
    gate = Gate()
    async with serving(lambda text, turn: [gate, *ANSWER]) as served:
        sent = body(("1.0", "JSONRPC"), "hello", "m", contextId="c") | {"configuration": {"returnImmediately": True}}
        first = (await served.rpc("SendMessage", sent))["result"]["task"]
        await until(lambda: served.executor.running)
        again = (await served.rpc("SendMessage", sent))["result"]["task"]
        assert (state_of(first), state_of(again)) == ("submitted", "working")
        gate.set()
        assert first["id"] == again["id"]


@pytest.mark.parametrize("keeps_tasks", [True, False])
async def test_the_card_says_whether_a_message_can_be_sent_again(keeps_tasks: bool) -> None:
    card = agent_card(name="x", description="x", url="http://x", version="1", keeps_tasks=keeps_tasks)
    assert accepts_once(card) is keeps_tasks
