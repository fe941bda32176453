from __future__ import annotations

import asyncio
from typing import Any

import pytest
from a2a.client.client import ClientCallContext
from a2a.types.a2a_pb2 import SubscribeToTaskRequest
from a2a.utils.errors import UnsupportedOperationError

from ai_platform_engineering.events import TextDelta
from tests.utils.a2a_common.scripted_executor import ANSWER, FORM, Gate
from tests.utils.a2a_common.serving import TRANSPORTS, Served, message_0_3, message_1_0, serving

LAST = len(ANSWER) + 2

SUBSCRIBE: dict[tuple[str, str], Any] = {
    ("0.3", "JSONRPC"): lambda served, task_id, **headers: served.all_events(
        "tasks/resubscribe", {"id": task_id}, **headers
    ),
    ("1.0", "JSONRPC"): lambda served, task_id, **headers: served.all_events(
        "SubscribeToTask", {"id": task_id}, **headers
    ),
    ("0.3", "HTTP+JSON"): lambda served, task_id, **headers: served.rest_events(
        "POST", f"/v1/tasks/{task_id}:subscribe", **headers
    ),
    ("1.0", "HTTP+JSON"): lambda served, task_id, **headers: served.rest_events(
        "GET", f"/tasks/{task_id}:subscribe", **headers
    ),
}

every_transport = pytest.mark.parametrize("transport", TRANSPORTS, ids="-".join)


def kind(item: dict[str, Any]) -> str:
    if "kind" in item:
        return item["kind"]
    return {"task": "task", "statusUpdate": "status-update", "artifactUpdate": "artifact-update"}[next(iter(item))]


async def answered(served: Served) -> str:
    return (await served.rpc("message/send", message_0_3("hello")))["result"]["id"]


@every_transport
async def test_every_frame_carries_its_number(transport: tuple[str, str]) -> None:
    version, binding = transport
    body = message_0_3("hello") if version == "0.3" else message_1_0("hello")
    async with serving() as served:
        if binding == "JSONRPC":
            method = "message/stream" if version == "0.3" else "SendStreamingMessage"
            events = await served.all_events(method, body)
        elif version == "1.0":
            events = await served.rest_events("POST", "/message:stream", body)
        else:
            message = {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hello"}]}
            events = await served.rest_events("POST", "/v1/message:stream", {"request": message})
        assert [seq for seq, _ in events] == list(range(LAST + 1))
        assert kind(events[0][1]) == "task"


@every_transport
@pytest.mark.parametrize("seen", [0, 3, LAST - 1, LAST])
async def test_an_ended_task_is_sent_again_from_any_number(transport: tuple[str, str], seen: int) -> None:
    async with serving() as served:
        task_id = await answered(served)
        events = await SUBSCRIBE[transport](served, task_id, Last_Event_ID=str(seen))
        assert [seq for seq, _ in events] == list(range(seen, LAST + 1))
        assert [kind(item) for _, item in events].count("task") == 1
        assert kind(events[0][1]) == "task"


async def test_what_was_missed_is_what_others_saw_and_the_task_is_as_it_was_then() -> None:
    async with serving() as served:
        seen = await served.all_events("message/stream", message_0_3("hello"))
        task_id = seen[0][1]["id"]
        again = await served.all_events("tasks/resubscribe", {"id": task_id}, Last_Event_ID="5")
        assert again[1:] == seen[6:]
        task = again[0][1]
        assert task["status"]["state"] == "working"
        assert task["metadata"]["seq"] == 5
        assert task["artifacts"][-1]["parts"] == [{"kind": "text", "text": "Version 2.11 🔧"}]
        assert "final_result" not in str(task)


@every_transport
async def test_stored_and_live_join_without_a_gap(transport: tuple[str, str]) -> None:
    gates = [Gate() for _ in range(4)]
    texts = [TextDelta("supervisor", "m1", f"{number} ") for number in range(40)]
    script = [*texts[:10], gates[0], *texts[10:20], gates[1], *texts[20:30], gates[2], *texts[30:], gates[3], *ANSWER]
    async with serving(lambda text, turn: script) as served:
        started = await served.rpc("message/send", message_0_3("hello") | {"configuration": {"blocking": False}})
        task_id = started["result"]["id"]
        last = len(script) - len(gates) + 2
        followers = []
        for number, gate in enumerate(gates):
            for seen in (0, number * 10):
                follower = SUBSCRIBE[transport](served, task_id, Last_Event_ID=str(seen))
                followers.append((seen, asyncio.create_task(follower)))
            await asyncio.sleep(0.02)
            gate.set()
        for seen, follower in followers:
            assert [seq for seq, _ in await follower] == list(range(seen, last + 1))


@every_transport
async def test_without_a_number_a_running_task_is_sent_from_now_on(transport: tuple[str, str]) -> None:
    gate = Gate()
    async with serving(lambda text, turn: [*ANSWER[:3], gate, *ANSWER[3:]]) as served:
        started = await served.rpc("message/send", message_0_3("hello") | {"configuration": {"blocking": False}})
        task_id = started["result"]["id"]
        async for entries in served.log.follow(task_id):
            if entries[-1].seq == 4:
                break
        follower = asyncio.create_task(SUBSCRIBE[transport](served, task_id))
        await asyncio.wait_for(served.heard.wait(), 90)
        gate.set()
        events = await follower
        assert [seq for seq, _ in events] == list(range(4, LAST + 1))


async def test_without_a_number_an_ended_task_is_an_error_in_1_0_and_the_task_in_0_3() -> None:
    async with serving() as served:
        task_id = await answered(served)
        events = await served.all_events("tasks/resubscribe", {"id": task_id})
        assert [(seq, kind(item), item["status"]["state"]) for seq, item in events] == [(LAST, "task", "completed")]
        answer = await served.rpc("SubscribeToTask", {"id": task_id})
        assert answer["error"]["code"] == -32004
        response = await served.http.get(f"{served.url}/tasks/{task_id}:subscribe")
        assert response.status_code == 400
        with pytest.raises(UnsupportedOperationError):
            await anext(served.client("1.0", "JSONRPC").subscribe(SubscribeToTaskRequest(id=task_id)))


@every_transport
@pytest.mark.parametrize("header", [{}, {"Last_Event_ID": "0"}, {"Last_Event_ID": "3"}], ids=["none", "0", "3"])
async def test_a_task_that_waits_for_an_answer_is_sent_and_the_stream_ends(
    transport: tuple[str, str], header: dict[str, str]
) -> None:
    async with serving(lambda text, turn: [FORM]) as served:
        task_id = await answered(served)
        async with asyncio.timeout(90):
            events = await SUBSCRIBE[transport](served, task_id, **header)
        assert [seq for seq, _ in events] == list(range(int(header.get("Last_Event_ID", 3)), 4))


async def test_a_pause_that_was_answered_does_not_end_the_repetition() -> None:
    async with serving(lambda text, turn: [FORM] if turn == 0 else ANSWER) as served:
        task_id = await answered(served)
        await served.rpc("message/send", message_0_3("guestbook", taskId=task_id, messageId="m-2"))
        events = await served.all_events("tasks/resubscribe", {"id": task_id}, Last_Event_ID="1")
        assert [seq for seq, _ in events] == list(range(1, 3 + LAST + 1))
        assert events[-1][1]["status"]["state"] == "completed"


@pytest.mark.parametrize("seen", [2, 2.0])
async def test_in_0_3_the_number_may_stand_in_the_metadata(seen: float) -> None:
    async with serving() as served:
        task_id = await answered(served)
        events = await served.all_events("tasks/resubscribe", {"id": task_id, "metadata": {"after_seq": seen}})
        assert [number for number, _ in events] == list(range(2, LAST + 1))


@pytest.mark.parametrize("seen", [-1, 2.5, True, "two", [2], {}, 10**20, 1e300])
async def test_numbers_in_the_metadata_that_are_none(seen: object) -> None:
    async with serving() as served:
        task_id = await answered(served)
        answer = await served.rpc("tasks/resubscribe", {"id": task_id, "metadata": {"after_seq": seen}})
        assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("seen", ["x", "-1", "1.5", "", str(LAST + 1), "9" * 5000, "²", "1_0", "0x1"])
async def test_headers_that_are_no_number_of_an_event(seen: str) -> None:
    async with serving() as served:
        task_id = await answered(served)
        header = {"Last-Event-ID": seen.encode()}
        for method in ("tasks/resubscribe", "SubscribeToTask"):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": task_id}}
            answer = (await served.http.post(served.url, json=body, headers=header)).json()
            assert answer["error"]["code"] == -32602
        for path in (f"/v1/tasks/{task_id}:subscribe", f"/tasks/{task_id}:subscribe"):
            response = await served.http.get(served.url + path, headers=header)
            assert response.status_code == 400


async def test_the_card_declares_that_streams_can_be_resumed() -> None:
    async with serving() as served:
        card = (await served.http.get(f"{served.url}/.well-known/agent-card.json")).json()
        uris = [extension["uri"] for extension in card["capabilities"]["extensions"]]
        assert "urn:ai-platform-engineering:a2a:resume:v1" in uris


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_the_sdks_client_can_send_the_header(version: str) -> None:
    async with serving() as served:
        task_id = await answered(served)
        context = ClientCallContext(service_parameters={"Last-Event-ID": "4"})
        stream = served.client(version, "JSONRPC").subscribe(SubscribeToTaskRequest(id=task_id), context=context)
        items = [item async for item in stream]
        assert items[0].task.id == task_id
        assert len(items) == 1 + LAST - 4
