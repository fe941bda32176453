"""Events that were shown stay stored: with broken connections, after a restart and after a kill."""

from __future__ import annotations

import asyncio
import json
import signal
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from a2a.types.a2a_pb2 import GetTaskRequest, StreamResponse, TaskState

from ai_platform_engineering.events import Failed, FinalResult, ToolStarted
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.file import open_for_reading, tasks_file
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from ai_platform_engineering.utils.a2a_common.wire import decode_task
from tests.invariants import check
from tests.servers import Caller, CommandLine, calling
from tests.storage.event_log.test_log_contract import QUESTION as WHICH
from tests.storage.event_log.test_log_contract import Writer

Frame = tuple[int, Any]

QUESTION = "show argocd version"


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    return {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "LOG_LEVEL": "warning", **more}


async def frames(
    http: httpx.AsyncClient, url: str, method: str, params: Any, stop_after: int | None = None, **headers: str
) -> list[Frame]:
    """The numbered frames of one stream; the connection is cut after `stop_after` of them."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    seen: list[Frame] = []
    number = -1
    async with http.stream("POST", url, json=body, headers=names) as response:
        async for line in response.aiter_lines():
            name, _, value = line.partition(":")
            if name == "id":
                number = int(value)
            elif name == "data":
                answer = json.loads(value)
                assert "error" not in answer, answer
                seen.append((number, answer["result"]))
                if len(seen) == stop_after:
                    break
    return seen


def asked(text: str, **fields: str) -> dict[str, Any]:
    message = {"role": "user", "messageId": uuid.uuid4().hex, "parts": [{"kind": "text", "text": text}], **fields}
    return {"message": message}


async def resubscribed(http: httpx.AsyncClient, url: str, task_id: str, seen: int, how: str) -> list[Frame]:
    match how:
        case "0.3 header":
            return await frames(http, url, "tasks/resubscribe", {"id": task_id}, Last_Event_ID=str(seen))
        case "0.3 metadata":
            params = {"id": task_id, "metadata": {"after_seq": seen}}
            return await frames(http, url, "tasks/resubscribe", params)
        case _:
            return await frames(http, url, "SubscribeToTask", {"id": task_id}, Last_Event_ID=str(seen))


WAYS = ("0.3 header", "0.3 metadata", "1.0 header")


async def check_every_cut(http: httpx.AsyncClient, url: str, whole: list[Frame]) -> None:
    """From after every event, in every way, from two clients at once: the parts join to the whole, once."""
    task_id = whole[0][1]["id"]
    last = whole[-1][0]

    async def check_cut(seen: int) -> None:
        rests = await asyncio.gather(
            *(resubscribed(http, url, task_id, seen, how) for how in (*WAYS, WAYS[seen % len(WAYS)]))
        )
        for rest in rests:
            assert [number for number, _ in rest] == list(range(seen, last + 1))
        for rest in rests[:2]:
            assert rest[1:] == whole[seen + 1 :]

    for start in range(0, last + 1, 8):
        await asyncio.gather(*map(check_cut, range(start, min(start + 8, last + 1))))


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=40)) as client:
        yield client


async def test_cut_after_every_event_then_restart_then_cut_again_and_follow_up(
    tmp_path_factory: pytest.TempPathFactory, http: httpx.AsyncClient
) -> None:
    folder = tmp_path_factory.mktemp("data")
    async with CommandLine(["--port", "0"], environ_of(folder)) as supervisor:
        whole = await frames(
            http, supervisor.url, "message/stream", asked("show the status of the guestbook app", contextId="talk")
        )
        assert [number for number, _ in whole] == list(range(len(whole)))
        await check_every_cut(http, supervisor.url, whole)

    async with CommandLine(["--port", "0"], environ_of(folder)) as supervisor:
        await check_every_cut(http, supervisor.url, whole)
        async with calling(supervisor.url) as caller:
            task = await caller.client.get_task(GetTaskRequest(id=whole[0][1]["id"]))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED
            ending = check(await caller.ask("what about payments-api?", context_id="talk"))
        assert isinstance(ending, FinalResult)
        assert "payments-api" in ending.text


async def test_cut_in_mid_run_after_every_event_in_turn(
    tmp_path_factory: pytest.TempPathFactory, http: httpx.AsyncClient
) -> None:
    """The connection breaks while the run goes on; what comes meanwhile comes after the reconnection."""
    folder = tmp_path_factory.mktemp("data")
    async with CommandLine(["--port", "0"], environ_of(folder, OFFLINE_MODEL_DELAY="0.002")) as supervisor:
        whole = await frames(http, supervisor.url, "message/stream", asked(QUESTION))

        async def broken(cut: int) -> None:
            part = await frames(http, supervisor.url, "message/stream", asked(QUESTION), stop_after=cut)
            rest = await resubscribed(http, supervisor.url, part[0][1]["id"], part[-1][0], WAYS[cut % 3])
            numbers = [number for number, _ in part] + [number for number, _ in rest[1:]]
            assert numbers == list(range(len(numbers)))
            assert rest[0][0] == part[-1][0]
            assert "TASK_STATE_COMPLETED" in str(rest[-1]) or "'completed'" in str(rest[-1])

        for start in range(1, len(whole), 6):
            await asyncio.gather(*map(broken, range(start, min(start + 6, len(whole)))))


@pytest.mark.parametrize("words", [3, 25])
async def test_killed_in_mid_run_everything_shown_is_there_and_the_run_continues(
    tmp_path_factory: pytest.TempPathFactory, http: httpx.AsyncClient, words: int
) -> None:
    folder = tmp_path_factory.mktemp("data")
    slow = environ_of(folder, OFFLINE_MODEL_DELAY="0.03")
    shown: dict[str, list[Frame]] = {}

    async def follow(url: str, name: str) -> None:
        body = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": asked(QUESTION, contextId=name)}
        shown[name] = []
        number = -1
        try:
            async with http.stream("POST", url, json=body) as response:
                async for line in response.aiter_lines():
                    kind, _, value = line.partition(":")
                    if kind == "id":
                        number = int(value)
                    elif kind == "data":
                        shown[name].append((number, json.loads(value)["result"]))
        except httpx.TransportError:
            return

    async with CommandLine(["--port", "0"], slow) as supervisor:
        followers = [asyncio.create_task(follow(supervisor.url, f"c{number}")) for number in range(4)]
        # One that waits its turn behind the first.
        followers.append(asyncio.create_task(follow(supervisor.url, "c0")))
        async with asyncio.timeout(90):
            while min(len(shown.get(f"c{number}", ())) for number in range(1, 4)) < words:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await supervisor.stop(signal.SIGKILL) == -signal.SIGKILL
        await asyncio.gather(*followers)

    async with CommandLine(["--port", "0"], slow) as supervisor, asyncio.timeout(90):
        for name in ("c1", "c2", "c3"):
            part = shown[name]
            task_id = part[0][1]["id"]
            rest = await resubscribed(http, supervisor.url, task_id, part[-1][0], "0.3 header")
            again = await resubscribed(http, supervisor.url, task_id, 0, "0.3 header")
            assert again[1 : len(part)] == part[1:], "the shown events are a prefix of the stored ones"
            assert again[len(part) :] == rest[1:]
            assert [number for number, _ in again] == list(range(len(again)))
            await check_resumed(supervisor.url, task_id)
        async with calling(supervisor.url) as caller:
            # The task that waited for its turn is worked on, too.
            while await task_states(http, supervisor.url) != {"TASK_STATE_COMPLETED"}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert isinstance(check(await caller.ask(QUESTION, context_id="c1")), FinalResult)
    assert not any("Traceback" in line for line in supervisor.output)


async def task_states(http: httpx.AsyncClient, url: str) -> set[str]:
    call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    listed = await http.post(url, json=call, headers={"A2A-Version": "1.0"})
    return {task["status"]["state"] for task in listed.json()["result"]["tasks"]}


async def check_resumed(url: str, task_id: str) -> None:
    async with calling(url) as caller:
        task = await caller.client.get_task(GetTaskRequest(id=task_id))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert isinstance(check(decode_task(task)), FinalResult)


async def test_a_killed_supervisors_tasks_can_be_read_without_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("data")
    async with CommandLine(["--port", "0"], environ_of(folder)) as supervisor:
        async with calling(supervisor.url) as caller:
            events = await caller.ask(QUESTION)
        await supervisor.stop(signal.SIGKILL)
    connection = open_for_reading(folder / "tasks.db")
    try:
        assert connection.execute("SELECT count(*) FROM event").fetchone()[0] > len(events)
    finally:
        connection.close()


async def test_after_a_stop_in_order_the_run_continues(
    tmp_path_factory: pytest.TempPathFactory, http: httpx.AsyncClient
) -> None:
    folder = tmp_path_factory.mktemp("data")
    slow = environ_of(folder, OFFLINE_MODEL_DELAY="0.1")
    async with CommandLine(["--port", "0"], slow) as supervisor, calling(supervisor.url) as caller:
        updates = [update async for update in stopped_after_first_event(caller, supervisor)]
        assert await supervisor.stop() == 0
    last = updates[-1].status_update
    assert last.status.state == TaskState.TASK_STATE_WORKING
    assert "This task continues when it runs again" in last.status.message.parts[0].text
    async with CommandLine(["--port", "0"], environ_of(folder)) as supervisor, asyncio.timeout(90):
        await resubscribed(http, supervisor.url, last.task_id, 1, "0.3 header")
        await check_resumed(supervisor.url, last.task_id)


async def stopped_after_first_event(caller: Caller, supervisor: CommandLine) -> AsyncIterator[StreamResponse]:
    """The updates of a run whose server is terminated after its first artifact."""
    stopping = False
    async for update in caller.updates(QUESTION):
        yield update
        if update.HasField("artifact_update") and not stopping and supervisor.process is not None:
            stopping = True
            supervisor.process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(("name", "command"), [("supervisor", []), ("argocd", ["agent", "argocd"])])
async def test_expired_forms_end_at_the_start_and_younger_ones_wait_on(
    tmp_path_factory: pytest.TempPathFactory, http: httpx.AsyncClient, name: str, command: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("data")
    environ = environ_of(folder, FORM_EXPIRY_HOURS="24")
    async with SqliteEventLog(tasks_file(load_settings(environ, None), name)).opened() as log:
        for task_id, hours in (("old", 25), ("young", 23)):
            writer = Writer(log, task_id, f"talk-{task_id}")
            writer.state.clock = lambda hours=hours: time.time() - hours * 3600
            writer.state.agent = name
            await writer.begin()
            await writer.write(ToolStarted(name, "request_user_input", "c1"), WHICH)

    async with CommandLine([*command, "--port", "0"], environ) as server, calling(server.url, name) as caller:

        async def state_of(task_id: str) -> int:
            return int((await caller.client.get_task(GetTaskRequest(id=task_id))).status.state)

        async with asyncio.timeout(90):
            while await state_of("old") != TaskState.TASK_STATE_FAILED:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        rest = await resubscribed(http, server.url, "old", 4, "0.3 header")
        assert [number for number, _ in rest] == [4, 5, 6]
        task = await caller.client.get_task(GetTaskRequest(id="old"))
        assert decode_task(task)[-1] == Failed(
            "expired", "The form was not answered within 1 day, so the task was ended. Ask again to start over."
        )
        assert await state_of("young") == TaskState.TASK_STATE_INPUT_REQUIRED
        assert isinstance(check(await caller.ask(QUESTION, context_id="talk-old"), agent=name), FinalResult)
        await server.stop(signal.SIGKILL)

    async with CommandLine([*command, "--port", "0"], environ) as server, calling(server.url, name) as caller:
        states = [(await caller.client.get_task(GetTaskRequest(id=task))).status.state for task in ("old", "young")]
    assert states == [TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_INPUT_REQUIRED]


async def test_in_memory_nothing_is_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("data")
    environ = environ_of(folder, EVENT_LOG="memory", CONVERSATIONS="memory")
    async with CommandLine(["--port", "0"], environ) as supervisor, calling(supervisor.url) as caller:
        check(await caller.ask("show the status of the guestbook app", context_id="talk"))
        ending = check(await caller.ask("what about payments-api?", context_id="talk"))
    assert isinstance(ending, FinalResult)
    assert "payments-api" in ending.text
    assert {path.name.split(".")[0] for path in folder.iterdir()} == {"sandbox"}
