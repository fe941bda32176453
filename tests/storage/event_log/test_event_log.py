from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore, TaskManager
from a2a.types.a2a_pb2 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import Canceled, Event, FinalResult, Form, InputRequired, TextDelta
from ai_platform_engineering.storage.event_log.event_log import Entry, TaskEndedError
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode
from tests.strategies import runs

QUESTION = InputRequired((Form("form-1", "Which?"),))
ANSWER = FinalResult("done", "m1")


def message(text: str = "hello", message_id: str = "q1") -> Message:
    return Message(message_id=message_id, role=Role.ROLE_USER, parts=[Part(text=text)])


def submitted(task_id: str = "t", context_id: str = "c") -> Task:
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    status.timestamp.GetCurrentTime()
    first = message(message_id="q1" if task_id == "t" else f"q1 of {task_id}")
    return Task(id=task_id, context_id=context_id, status=status, history=[first])


def deltas(count: int, message_id: str = "m1") -> list[Event]:
    return [TextDelta("supervisor", message_id, f"{number} ") for number in range(count)]


class Writer:
    """Writes events to a task the way an executor does."""

    def __init__(self, log: MemoryEventLog, task_id: str = "t", context_id: str = "c") -> None:
        self.log = log
        self.state = StreamState(task_id, context_id, "trace")

    async def begin(self) -> Writer:
        await self.log.create(submitted(self.state.task_id, self.state.context_id))
        await self.log.append(self.state.task_id, begin(self.state))
        return self

    async def write(self, *events: Event) -> list[Entry]:
        updates = [update for event in events for update in encode(self.state, event)]
        return await self.log.append(self.state.task_id, updates)


@pytest.fixture
def log() -> MemoryEventLog:
    return MemoryEventLog()


@pytest.fixture
async def writer(log: MemoryEventLog) -> Writer:
    return await Writer(log).begin()


async def numbers(following: AsyncIterator[Sequence[Entry]]) -> list[int]:
    async with asyncio.timeout(90):
        return [entry.seq async for entries in following for entry in entries]


async def test_reading_starts_behind_the_given_number(log: MemoryEventLog, writer: Writer) -> None:
    await writer.write(*deltas(3))
    assert [entry.seq for entry in await log.read("t", after=2)] == [3, 4]
    assert await log.read("t", after=4) == []


@given(run=runs())
@settings(max_examples=60, deadline=None)
def test_the_folded_task_is_the_sdks(run: list[Event]) -> None:
    asyncio.run(_fold_both_ways(run))


async def _fold_both_ways(run: list[Event]) -> None:
    log, state = MemoryEventLog(), StreamState("t", "c", "trace")
    updates = [*begin(state), *(update for event in run for update in encode(state, event))]
    context = ServerCallContext()
    sdk = TaskManager(InMemoryTaskStore(), context, "t", "c", None)
    await sdk.save_task_event(submitted())
    await log.create(submitted())
    await log.append("t", updates)
    for entry in await log.read("t"):
        await sdk.save_task_event(entry.event)

    theirs, ours = await sdk.get_task(), await log.task("t")
    assert theirs is not None
    assert ours is not None
    theirs.metadata["seq"] = len(updates)
    theirs.status.timestamp.CopyFrom(ours.status.timestamp)
    for task in (theirs, ours):
        del task.history[0]
        for artifact in task.artifacts:
            _join_texts(artifact)
    assert ours == theirs


def _join_texts(artifact: Artifact) -> None:
    parts: list[Part] = []
    for part in artifact.parts:
        if parts and parts[-1].HasField("text") and part.HasField("text"):
            parts[-1] = Part(text=parts[-1].text + part.text)
        else:
            parts.append(part)
    del artifact.parts[:]
    artifact.parts.extend(parts)


async def test_a_streamed_text_is_one_part_of_the_task(log: MemoryEventLog, writer: Writer) -> None:
    await writer.write(*deltas(3))
    assert (await log.task("t")).artifacts[0].parts == [Part(text="0 1 2 ")]
    await writer.write(*deltas(2))
    assert (await log.task("t")).artifacts[0].parts == [Part(text="0 1 2 0 1 ")]


async def test_a_text_that_begins_anew_replaces_what_there_was(log: MemoryEventLog, writer: Writer) -> None:
    await writer.write(*deltas(3))
    writer.state.opened.clear()
    await writer.write(TextDelta("supervisor", "m1", "again"))
    assert (await log.task("t")).artifacts[0].parts == [Part(text="again")]


@given(run=runs(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_snapshot_is_the_task_a_log_had_that_got_no_further(run: list[Event], data: st.DataObject) -> None:
    state = StreamState("t", "c", "trace", clock=lambda: 1.0)
    updates = [*begin(state), *(update for event in run for update in encode(state, event))]
    at = data.draw(st.integers(0, len(updates)))

    async def compare() -> None:
        whole, part, task = MemoryEventLog(), MemoryEventLog(), submitted()
        for log, events in ((whole, updates), (part, updates[:at])):
            await log.create(task)
            await log.append("t", events)
        assert await whole.snapshot("t", at=at) == await part.snapshot("t")

    asyncio.run(compare())


async def test_a_snapshot_has_the_messages_that_came_before_it(log: MemoryEventLog, writer: Writer) -> None:
    await writer.write(QUESTION)
    await log.add_message("t", message("the first", "q2"))
    await writer.write(*deltas(1))
    await writer.write(ANSWER)

    def said(task: Task) -> list[str]:
        return [entry.message_id for entry in task.history if entry.role == Role.ROLE_USER]

    assert said(await log.task("t", at=3)) == ["q1"]
    assert said(await log.task("t", at=4)) == ["q1", "q2"]
    assert said(await log.task("t")) == ["q1", "q2"]


async def test_following_ends_where_the_task_waits_for_an_answer(log: MemoryEventLog, writer: Writer) -> None:
    live = asyncio.create_task(numbers(log.follow("t")))
    await asyncio.sleep(0)
    await writer.write(QUESTION)

    assert await live == [1, 2, 3]
    assert await numbers(log.follow("t")) == [1, 2, 3]
    assert await numbers(log.follow("t", after=3)) == []


async def test_a_pause_that_was_answered_is_passed_over(log: MemoryEventLog, writer: Writer) -> None:
    await writer.write(QUESTION)
    await log.add_message("t", message(message_id="q2"))
    from_the_start = asyncio.create_task(numbers(log.follow("t")))
    the_answer = asyncio.create_task(numbers(log.follow("t", after=3)))
    await asyncio.sleep(0)
    await writer.write(ANSWER)

    assert await from_the_start == [1, 2, 3, 4, 5]
    assert await the_answer == [4, 5]


async def test_two_answers_at_once_are_two_turns(log: MemoryEventLog, writer: Writer) -> None:
    await writer.write(QUESTION)
    await log.add_message("t", message(message_id="q2"))
    first = asyncio.create_task(numbers(log.follow("t", after=3)))
    await asyncio.sleep(0)
    await log.add_message("t", message(message_id="q3"))
    second = asyncio.create_task(numbers(log.follow("t", after=3)))
    await asyncio.sleep(0)
    await writer.write(QUESTION)
    await asyncio.sleep(0)
    await writer.write(ANSWER)

    assert await first == [4, 5]
    assert await second == [4, 5, 6, 7]


async def test_a_task_canceled_while_it_waits_is_followed_to_its_end(log: MemoryEventLog, writer: Writer) -> None:
    await writer.write(QUESTION)
    await writer.write(Canceled())
    assert await numbers(log.follow("t")) == [1, 2, 3, 4]
    assert await numbers(log.follow("t", after=3)) == [4]


async def test_a_follower_that_does_not_read_delays_no_one_else(log: MemoryEventLog, writer: Writer) -> None:
    stuck = log.follow("t")
    await anext(stuck)
    other = asyncio.create_task(numbers(log.follow("t")))
    await writer.write(*deltas(500))
    await writer.write(ANSWER)
    assert len(await other) == 503
    assert len(await numbers(stuck)) == 502


async def test_a_follower_that_leaves_does_not_affect_others(log: MemoryEventLog, writer: Writer) -> None:
    leaving, staying = (asyncio.create_task(numbers(log.follow("t"))) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    await writer.write(ANSWER)
    assert await staying == [1, 2, 3]


async def test_a_batch_that_goes_on_after_its_end_is_refused_whole(log: MemoryEventLog, writer: Writer) -> None:
    with pytest.raises(TaskEndedError):
        await writer.write(ANSWER, *deltas(1))
    assert len(await log.read("t")) == 1


async def test_old_tasks_go_and_unfinished_ones_stay() -> None:
    log = MemoryEventLog(max_tasks=2)
    running = await Writer(log, "running").begin()
    parked = await Writer(log, "parked").begin()
    await parked.write(QUESTION)
    for name in ("a", "b", "c", "d"):
        await (await Writer(log, name).begin()).write(ANSWER)
    assert [name for name in ("a", "b", "c", "d", "running", "parked") if await log.state(name)] == [
        "c",
        "d",
        "running",
        "parked",
    ]

    await running.write(ANSWER)
    assert await log.state("c") is None
    assert await log.state("running") == TaskState.TASK_STATE_COMPLETED


async def test_a_dropped_task_is_still_followed_to_its_end() -> None:
    log = MemoryEventLog(max_tasks=1)
    writer = await Writer(log, "a").begin()
    reader = log.follow("a")
    assert [entry.seq for entry in await anext(reader)] == [1]
    await writer.write(ANSWER)
    await (await Writer(log, "b").begin()).write(ANSWER)
    assert await log.state("a") is None
    assert await numbers(reader) == [2, 3]
