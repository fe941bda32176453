"""A request from submitted to its end, over HTTP, with scripted models in the graph."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
)
from a2a.utils.errors import UnsupportedOperationError
from langchain_core.tools import BaseTool, tool

from ai_platform_engineering.events import (
    Canceled,
    Event,
    Failed,
    FinalResult,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import Entry
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent, GraphRun
from ai_platform_engineering.utils.a2a_common.server.a2a_app import with_a2a
from ai_platform_engineering.utils.a2a_common.server.a2a_server import agent_card
from ai_platform_engineering.utils.a2a_common.server.executor import RunExecutor
from ai_platform_engineering.utils.a2a_common.server.recorder import Recorder, joining_interval
from ai_platform_engineering.utils.a2a_common.wire import Decoder, StreamState, WireEvent
from tests.invariants import check
from tests.runs.graphs import agent
from tests.servers import Caller, calling, serving

QUESTION = {
    "id": 1,
    "method": "message/send",
    "params": {"message": {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hi"}]}},
}


@tool
async def waits() -> str:
    """Takes longer than anybody waits."""
    await asyncio.sleep(60)
    return ""


@tool
async def quick() -> str:
    """Is done at once."""
    return "done"


@asynccontextmanager
async def served(
    part: Sequence[Turn], tools: Sequence[BaseTool] = (), log: MemoryEventLog | None = None, **environ: str
) -> AsyncIterator[Caller]:
    graph = agent("supervisor", ScriptedChatModel(script=part), tools)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        yield

    def app(settings: Settings) -> Any:
        event_log = log or MemoryEventLog()
        card = agent_card(name="t", description="t", url=settings.public_url, version="1")
        executor = RunExecutor(BaseLangGraphAgent("supervisor", lambda _: graph), event_log, settings)
        return with_a2a(executor, event_log, card, settings, running=running, tools=lambda _: [])

    async with serving(app, environ) as url, calling(url) as caller:
        yield caller


async def collect(updates: AsyncIterator[StreamResponse], started: asyncio.Future[str] | None = None) -> list[Event]:
    """The events of a stream; `started` gets the task's id when a tool works, or when the task has to wait."""
    decoder = Decoder("supervisor")
    events: list[Event] = []
    async for update in updates:
        events += decoder.feed(update)
        is_waiting = update.HasField("task")
        if started is not None and not started.done() and (is_waiting or len(events) > 0):
            started.set_result(update.task.id or update.artifact_update.task_id)
    return [*events, *decoder.finish()]


async def test_cancel_while_it_waits_for_its_turn() -> None:
    async with served([Turn("", [("waits", {})])], [waits]) as caller:
        loop = asyncio.get_running_loop()
        first_id: asyncio.Future[str] = loop.create_future()
        second_id: asyncio.Future[str] = loop.create_future()
        first = asyncio.create_task(collect(caller.updates("one", context_id="c"), first_id))
        await first_id
        second = asyncio.create_task(collect(caller.updates("two", context_id="c"), second_id))
        task = await caller.client.get_task(GetTaskRequest(id=await second_id))
        assert task.status.state == TaskState.TASK_STATE_SUBMITTED
        canceled = await caller.client.cancel_task(CancelTaskRequest(id=second_id.result()))
        assert canceled.status.state == TaskState.TASK_STATE_CANCELED
        assert await second == [Canceled("user")]
        await caller.client.cancel_task(CancelTaskRequest(id=first_id.result()))
        assert isinstance(check(await first), Canceled)


async def test_a_run_without_an_end_is_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def half(self: GraphRun) -> AsyncIterator[Event]:
        yield TextDelta("supervisor", "m", "half ")

    monkeypatch.setattr(GraphRun, "events", half)
    async with served([]) as caller:
        assert isinstance(check(await caller.ask("q")), Failed)


async def test_a_server_that_stops_says_so_and_blames_no_agent() -> None:
    log = MemoryEventLog()
    async with served([Turn("Let me see.", [("waits", {})])], [waits], log) as caller:
        seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        streaming = asyncio.create_task(collect(caller.updates("q"), seen))
        task_id = await seen
        async for entries in log.follow(task_id):
            if any("waits" in str(entry.event) for entry in entries):
                break
    streaming.cancel()
    await asyncio.wait({streaming})
    decoder = Decoder("supervisor")
    events = [event for entry in await log.read(task_id) for event in decoder.feed(entry.event)]
    ending = check(events)
    assert isinstance(ending, Failed)
    assert ending.code == "stopped"


async def test_callers_need_the_shared_key_when_there_is_one() -> None:
    key = "the-key-that-we-share"
    async with served([Turn("Hello.")], A2A_AUTH_SHARED_KEY=key) as caller, httpx.AsyncClient() as http:
        assert (await http.post(caller.url, json=QUESTION)).status_code == 401
        wrong = await http.post(caller.url, json=QUESTION, headers={"Authorization": "Bearer nope"})
        assert wrong.status_code == 401
        assert key not in wrong.text
        right = await http.post(caller.url, json=QUESTION, headers={"Authorization": f"Bearer {key}"})
        assert right.json()["result"]["status"]["state"] == "completed"
        assert (await http.get(f"{caller.url}/healthz")).status_code == 200
        assert (await http.get(f"{caller.url}/tools")).status_code == 401


async def test_a_log_that_cannot_be_written_ends_the_run_as_failed() -> None:
    class FullDisk(MemoryEventLog):
        broken = False

        async def append(self, task_id: str, events: Sequence[WireEvent], epoch: int | None = None) -> list[Entry]:
            if not self.broken and any(getattr(e, "artifact", None) and "_end" in e.artifact.name for e in events):
                self.broken = True
                raise OSError(28, "No space left on device: /srv/data")
            return await super().append(task_id, events, epoch)

    part = [Turn("Let me see.", [("quick", {}), ("waits", {})]), Turn("Never.")]
    async with served(part, [quick, waits], FullDisk()) as caller:
        events = await caller.ask("q")
    assert isinstance(check(events), Failed)
    assert "/srv" not in repr(events)


async def test_text_is_joined_the_first_piece_at_once_and_nothing_is_held_at_a_boundary() -> None:
    log = MemoryEventLog()
    written: list[int] = []
    state = StreamState("t", "c", "trace")
    loop = asyncio.get_running_loop()

    log.subscribe(lambda _, entries: written.append(len(entries)))
    await log.create(Task(id="t", context_id="c"))
    async with Recorder(log, state, lambda: 30) as recorder:
        begun = loop.time()
        recorder.put(TextDelta("supervisor", "m", "a"))
        while not written:  # noqa: ASYNC110 - the recorder has no other way to say it
            await asyncio.sleep(0.001)
        for letter in "bcd":
            recorder.put(TextDelta("supervisor", "m", letter))
            await asyncio.sleep(0.01)
        assert written == [1], "the first at once, the others are waiting"
        recorder.put(FinalResult("abcd", "m"))
    assert loop.time() - begun < 20, "the end does not wait for the interval"
    updates = [entry.event for entry in await log.read("t")]
    texts = [update.artifact.parts[0].text for update in updates if isinstance(update, TaskArtifactUpdateEvent)]
    assert texts == ["a", "bcd", "abcd"]


@pytest.mark.parametrize(
    ("interval", "runs", "joined"),
    [
        (0.025, 1, 0.025),
        (0.025, 4, 0.025),
        (0.025, 8, 0.05),
        (0.025, 32, 0.2),
        (0.025, 500, 0.25),
        (1, 50, 1),
        (0, 9, 0),
    ],
)
def test_text_is_joined_for_longer_the_more_runs_are_active(interval: float, runs: int, joined: float) -> None:
    assert joining_interval(interval, runs) == pytest.approx(joined)


@pytest.mark.parametrize("interval", [30, 0.01])
async def test_what_no_person_watches_is_all_joined_and_the_end_waits_for_nothing(interval: float) -> None:
    log = MemoryEventLog()
    written: list[int] = []
    loop = asyncio.get_running_loop()
    opened = asyncio.Event()

    def observe(_: str, entries: Sequence[Entry]) -> None:
        written.append(len(entries))
        opened.set()

    log.subscribe(observe)
    await log.create(Task(id="t", context_id="c"))
    begun = loop.time()
    async with Recorder(log, StreamState("t", "c", "trace"), lambda: interval, to_people=False) as recorder:
        await recorder.begin()
        if interval < 1:
            await opened.wait()
            assert written == [1], "the start of the run is stored in time"
        recorder.put(ToolStarted("argocd", "version", "1"))
        await asyncio.sleep(0)
        recorder.put(ToolFinished("argocd", "version", "1", True))
        recorder.put(FinalResult("v3", "m"))
    assert loop.time() - begun < 20
    # Begun, both ends of the call, the answer and the end of the task.
    assert sum(written) == 5
    assert len(written) <= (1 if interval > 1 else 3)


async def test_a_task_that_is_being_worked_on_takes_no_second_message() -> None:
    async with served([Turn("", [("waits", {})])], [waits]) as caller:
        seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        streaming = asyncio.create_task(collect(caller.updates("q"), seen))
        task_id = await seen
        with pytest.raises(UnsupportedOperationError, match="waits its turn"):
            await collect(caller.updates("and this", task_id=task_id))
        await caller.client.cancel_task(CancelTaskRequest(id=task_id))
        assert isinstance(check(await streaming), Canceled)


@pytest.mark.parametrize(
    ("origin", "status"),
    [(None, 200), ("own", 200), ("https://portal.example", 200), ("https://evil.example", 403), ("null", 403)],
)
async def test_pages_of_other_sites_may_not_call(origin: str | None, status: int) -> None:
    async with served([Turn("Hello.")], ALLOWED_ORIGINS="https://portal.example, https://b.example") as caller:
        headers = {} if origin is None else {"Origin": caller.url if origin == "own" else origin}
        async with httpx.AsyncClient() as http:
            answer = await http.post(caller.url, json=QUESTION, headers=headers)
            assert answer.status_code == status
            assert (await http.get(f"{caller.url}/healthz", headers=headers)).status_code == 200


async def test_words_that_the_caller_does_not_want_are_not_sent() -> None:
    async with served([Turn("Let me see.", [("quick", {})]), Turn("It is done.")], [quick]) as caller:
        events = await caller.ask("q", metadata={"stream_text": False})
    assert [type(event).__name__ for event in events] == ["ToolStarted", "ToolFinished", "FinalResult"]
    assert isinstance(events[-1], FinalResult)
    assert events[-1].text == "It is done."
