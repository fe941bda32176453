"""What every event log does, in memory, in a file or in Postgres: one suite over all."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from a2a.types.a2a_pb2 import Message, Part, Role, Task, TaskState, TaskStatus
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import Canceled, Event, Failed, FinalResult, Form, InputRequired, TextDelta
from ai_platform_engineering.identity.access import UNOWNED, ConversationAccess
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.storage.event_log import conversations
from ai_platform_engineering.storage.event_log.conversations import ConversationQuery, search_words
from ai_platform_engineering.storage.event_log.event_log import (
    Entry,
    EventLog,
    ForeignConversationError,
    FoundMessage,
    RecordedEffect,
    RepeatedMessageError,
    StoredRequest,
    SupersededError,
    TaskEndedError,
    TaskQuery,
    UnknownTaskError,
)
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.storage.event_log.postgres.log import PostgresEventLog
from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode, seq_of
from tests.services.postgres import new_database
from tests.strategies import runs

pytest_plugins = ("tests.services.fixtures",)

T = TypeVar("T")

QUESTION = InputRequired((Form("form-1", "Which?"),))
ANSWER = FinalResult("done", "m1")


def message(message_id: str = "q1") -> Message:
    return Message(message_id=message_id, role=Role.ROLE_USER, parts=[Part(text="hello")])


def submitted(task_id: str = "t", context_id: str = "c", message_id: str = "") -> Task:
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    status.timestamp.GetCurrentTime()
    first = message(message_id or ("q1" if task_id == "t" else f"q1 of {task_id}"))
    return Task(id=task_id, context_id=context_id, status=status, history=[first])


def deltas(count: int) -> list[Event]:
    return [TextDelta("supervisor", "m1", f"{number} ") for number in range(count)]


class Writer:
    """Writes events to a task the way an executor does."""

    def __init__(self, log: EventLog, task_id: str = "t", context_id: str = "c") -> None:
        self.log = log
        self.state = StreamState(task_id, context_id, "trace")

    async def begin(self) -> Writer:
        await self.log.create(submitted(self.state.task_id, self.state.context_id))
        await self.log.append(self.state.task_id, begin(self.state))
        return self

    async def write(self, *events: Event) -> list[Entry]:
        updates = [update for event in events for update in encode(self.state, event)]
        return await self.log.append(self.state.task_id, updates)


DURABLE = ("sqlite", pytest.param("postgres", marks=pytest.mark.process))
KINDS = ("memory", *DURABLE)

MakeLog = Callable[[str, Path], EventLog]


@pytest.fixture(scope="session")
def log_database(postgres_address: str) -> Iterator[str]:
    with new_database(postgres_address) as address:
        yield address


@pytest.fixture(scope="session")
def make_log(request: pytest.FixtureRequest) -> MakeLog:
    """Makes an empty log: in the directory, or for a server of its own in the database of the session."""

    def make(kind: str, folder: Path) -> EventLog:
        match kind:
            case "memory":
                return MemoryEventLog()
            case "sqlite":
                return SqliteEventLog(folder / "tasks.db")
            case _:
                return PostgresEventLog(LogAddress(request.getfixturevalue("log_database")), f"server-{uuid4().hex}")

    return make


@pytest.fixture(params=KINDS)
async def log(request: pytest.FixtureRequest, make_log: MakeLog, tmp_path: Path) -> AsyncIterator[EventLog]:
    async with make_log(request.param, tmp_path).opened() as opened:
        yield opened


@pytest.fixture
async def writer(log: EventLog) -> Writer:
    return await Writer(log).begin()


def reopened(log: EventLog) -> EventLog:
    """A new log on the same file or tables, with nothing in memory."""
    if isinstance(log, SqliteEventLog):
        return SqliteEventLog(log._path)
    assert isinstance(log, PostgresEventLog)
    return PostgresEventLog(log._address, log._server)


async def numbers(following: AsyncIterator[Sequence[Entry]]) -> list[int]:
    async with asyncio.timeout(90):
        return [entry.seq async for entries in following for entry in entries]


async def test_numbers_are_given_out_in_order_and_stand_where_readers_look(log: EventLog, writer: Writer) -> None:
    first = await writer.write(*deltas(2))
    last = await writer.write(ANSWER)
    assert [entry.seq for entry in [*first, *last]] == [2, 3, 4, 5]
    assert [entry.seq for entry in await log.read("t", after=2)] == [3, 4, 5]
    for entry in await log.read("t"):
        assert seq_of(entry.event) == entry.seq


async def test_followers_that_start_anywhere_miss_nothing_and_get_nothing_twice(log: EventLog, writer: Writer) -> None:
    followers = []
    for batch in range(20):
        for after in {0, batch, batch * 3 + 1}:
            followers.append((after, asyncio.create_task(numbers(log.follow("t", after)))))
        await writer.write(*deltas(3))
    await writer.write(ANSWER)
    last = 1 + 20 * 3 + 2
    for after, follower in followers:
        assert await follower == list(range(after + 1, last + 1))


@pytest.mark.parametrize("ending", [ANSWER, Canceled()])
async def test_following_ends_with_the_task_and_also_when_it_has_ended(
    log: EventLog, writer: Writer, ending: Event
) -> None:
    live = asyncio.create_task(numbers(log.follow("t")))
    await asyncio.sleep(0)
    last = (await writer.write(*deltas(2), ending))[-1].seq
    assert await live == list(range(1, last + 1))
    for after in range(last + 1):
        assert await numbers(log.follow("t", after)) == list(range(after + 1, last + 1))


async def test_a_pause_ends_the_stream_and_an_answered_one_does_not(log: EventLog, writer: Writer) -> None:
    live = asyncio.create_task(numbers(log.follow("t")))
    await asyncio.sleep(0)
    await writer.write(QUESTION)
    assert await live == [1, 2, 3]
    assert await numbers(log.follow("t", after=3)) == []

    await log.add_message("t", message("q2"))
    from_the_start = asyncio.create_task(numbers(log.follow("t")))
    the_answer = asyncio.create_task(numbers(log.follow("t", after=3)))
    await asyncio.sleep(0)
    await writer.write(ANSWER)
    assert await from_the_start == [1, 2, 3, 4, 5]
    assert await the_answer == [4, 5]
    assert [said.message_id for said in (await log.task("t")).history if said.role == Role.ROLE_USER] == ["q1", "q2"]
    assert [said.message_id for said in (await log.task("t", at=3)).history if said.role == Role.ROLE_USER] == ["q1"]


async def test_a_stream_ends_at_its_own_pause_even_if_it_is_answered_before_it_gets_there(
    log: EventLog, writer: Writer
) -> None:
    slow = log.follow("t")
    assert [entry.seq for entry in await anext(slow)] == [1]
    await writer.write(QUESTION)
    await log.add_message("t", message("q2"))
    await writer.write(ANSWER)
    assert await numbers(slow) == [2, 3]


async def test_nothing_follows_the_end(log: EventLog, writer: Writer) -> None:
    with pytest.raises(TaskEndedError):
        await writer.write(ANSWER, *deltas(1))
    assert len(await log.read("t")) == 1
    await writer.write(ANSWER)
    with pytest.raises(TaskEndedError):
        await writer.write(*deltas(1))
    with pytest.raises(TaskEndedError):
        await log.add_message("t", message())
    assert len(await log.read("t")) == 3


async def test_of_two_ends_at_once_one_counts(log: EventLog, writer: Writer) -> None:
    ends = await asyncio.gather(writer.write(ANSWER), writer.write(Canceled()), return_exceptions=True)
    assert [isinstance(end, TaskEndedError) for end in ends] == [False, True]
    assert await numbers(log.follow("t")) == [1, 2, 3]


async def test_tasks_it_does_not_have(log: EventLog) -> None:
    assert await log.task("nope") is None
    assert await log.state("nope") is None
    assert await log.snapshot("nope", at=3) is None
    for attempt in (log.read("nope"), log.append("nope", []), log.add_message("nope", message())):
        with pytest.raises(UnknownTaskError):
            await attempt
    with pytest.raises(UnknownTaskError):
        await anext(log.follow("nope"))


async def test_a_task_begins_once(log: EventLog, writer: Writer) -> None:
    with pytest.raises(ValueError, match="already has task 't'"):
        await log.create(submitted())
    created = await asyncio.gather(log.create(submitted("u")), log.create(submitted("u")), return_exceptions=True)
    assert [type(result) for result in created] == [type(None), ValueError]
    await log.append("u", begin(StreamState("u", "c", "trace")))
    assert len(await log.read("u")) == 1


async def test_changing_a_task_that_was_read_changes_nothing_here(log: EventLog, writer: Writer) -> None:
    for _ in range(2):
        task = await log.task("t")
        before = Task()
        before.CopyFrom(task)
        task.artifacts.add()
        task.status.state = TaskState.TASK_STATE_REJECTED
        assert await log.task("t") == before
        if not (await log.task("t")).artifacts:
            await writer.write(ANSWER)


async def test_a_caller_that_stops_waiting_takes_nothing_back(log: EventLog, writer: Writer) -> None:
    attempt = asyncio.create_task(writer.write(*deltas(3)))
    await asyncio.sleep(0)
    attempt.cancel()
    await asyncio.gather(attempt, return_exceptions=True)
    await writer.write(ANSWER)
    assert await numbers(log.follow("t")) == [1, 2, 3, 4, 5, 6]


async def test_listing_pages_through_every_task_newest_first(log: EventLog) -> None:
    for number in range(7):
        writer = Writer(log, f"t{number}", f"c{number % 2}")
        writer.state.clock = lambda at=number: 1_000.0 + at
        await writer.begin()
        if number == 3:
            await writer.write(ANSWER)
    seen, after = [], None
    while True:
        page = await log.tasks(TaskQuery(after=after, limit=3))
        assert page.total == 7
        seen += [task.id for task in page.tasks]
        after = page.next
        if after is None:
            break
    assert seen == [f"t{number}" for number in reversed(range(7))]
    assert [task.id for task in (await log.tasks(TaskQuery(context_id="c1"))).tasks] == ["t5", "t3", "t1"]
    ended = await log.tasks(TaskQuery(state=TaskState.TASK_STATE_COMPLETED))
    assert [task.id for task in ended.tasks] == ["t3"]
    assert ended.tasks[0] == await log.task("t3")
    recent = await log.tasks(TaskQuery(changed_since_ns=1_005_000_000_000))
    assert [task.id for task in recent.tasks] == ["t6", "t5"]
    assert (await log.tasks(TaskQuery(context_id="unknown"))).next is None


async def listed(log: EventLog, search: str = "", limit: int = 50) -> list[list[str]]:
    """The ids of the conversations, page by page."""
    pages, after = [], None
    while True:
        page = await log.conversations(ConversationQuery(search_words(search), after, limit))
        pages.append([row.id for row in page.rows])
        after = page.next
        if after is None:
            return pages


async def test_listing_pages_through_every_conversation_newest_change_first(log: EventLog) -> None:
    assert await listed(log) == [[]]
    for number in range(8):
        writer = Writer(log, f"t{number}", f"c{number % 5}")
        writer.state.clock = lambda at=number: 5_000_000_000.0 + at
        await writer.begin()
        if number != 5:
            await writer.write(ANSWER)
    assert await listed(log, limit=2) == [["c2", "c1"], ["c0", "c4"], ["c3"]]
    assert await listed(log, limit=5) == [["c2", "c1", "c0", "c4", "c3"]]
    rows = (await log.conversations(ConversationQuery())).rows
    assert [(row.tasks, row.state) for row in rows[2:4]] == [
        (2, TaskState.TASK_STATE_WORKING),
        (1, TaskState.TASK_STATE_COMPLETED),
    ]
    assert rows[2].changed_ns == 5_000_000_005_000_000_000
    assert (rows[2].first.id, rows[2].first.history[0].message_id) == ("t0", "q1 of t0")
    await log.prune(max_tasks=0, max_age_days=0)
    assert await listed(log) == [["c0"]]


async def test_a_search_finds_all_words_in_questions_and_answers(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "one": [("Deploy the Payments API", FinalResult("Deployed to Staging.", "m1")), ("And now?", ANSWER)],
        "two": [("deploy the search API", Failed("limit", "Too long.", "Half of the deployment to STAGING."))],
        "three": [("Größe der Datenbank?", FinalResult("40 GB", "m1"))],
        "four": [("deploy staging", QUESTION), ("deploy staging", None)],
    }
    for place, (context_id, tasks) in enumerate(texts.items()):
        for number, (question, ending) in enumerate(tasks):
            writer = Writer(log, f"{context_id}-{number}", context_id)
            writer.state.clock = lambda at=place: 5_000_000_000.0 - at
            task = submitted(writer.state.task_id, context_id)
            task.history[0].parts[0].text = question
            await log.create(task)
            await log.append(task.id, begin(writer.state))
            await writer.write(TextDelta("supervisor", "m1", "narration"), *([ending] if ending else []))
    assert await listed(log, "Deploy STAGING") == [["one", "two", "four"]]
    assert await listed(log, "staging", limit=2) == [["one", "two"], ["four"]]
    assert await listed(log, "payments done") == [["one"]]
    assert await listed(log, "größe") == [["three"]]
    assert await listed(log, "narration") == await listed(log, "which?") == [[]]
    # A search that has read enough tasks continues on the next page.
    monkeypatch.setattr(conversations, "MAX_SCANNED_TASKS", 2)
    assert await listed(log, "gb") == [[], ["three"], []]


async def test_a_name_is_found_and_is_deleted_with_its_conversation(log: EventLog) -> None:
    assert not await log.rename("c", "Nothing")
    assert await log.name("c") is None
    for task_id, context_id in (("t1", "c"), ("t2", "c"), ("t3", "d")):
        await (await Writer(log, task_id, context_id).begin()).write(ANSWER)
    waiting = await Writer(log, "t4", "c").begin()
    await waiting.write(QUESTION)
    assert await log.rename("c", "Payments in trouble")
    assert await log.rename("d", "Search")
    rows = (await log.conversations(ConversationQuery())).rows
    assert {row.id: row.name for row in rows} == {"c": "Payments in trouble", "d": "Search"}
    assert await listed(log, "TROUBLE hello") == [["c"]]
    assert await log.rename("c", "Checkout")
    assert (await log.name("c"), await log.name("d"), await log.name("e")) == ("Checkout", "Search", None)
    assert await listed(log, "trouble") == [[]]
    assert await log.rename("d", None)
    assert await log.name("d") is None
    assert await log.rename("d", "Search again")

    assert await log.prune(max_tasks=0, max_age_days=0) == {"d"}
    assert (await log.name("c"), await log.name("d")) == ("Checkout", None)
    assert not await log.rename("d", "Too late")
    # The open task begins the conversation anew.
    assert await log.delete_conversation("c") == 0
    assert await log.name("c") is None
    assert await log.rename("c", "New")
    await waiting.write(Canceled())
    assert await log.delete_conversation("c") == 1
    await Writer(log, "t5", "c").begin()
    assert await log.name("c") is None


async def test_a_listing_has_the_access_to_each_conversation_that_the_viewer_sees(log: EventLog) -> None:
    ann, bob = Principal("token", "ann"), Principal("token", "bob", frozenset({"sre"}))
    admin = Principal.with_key("ops", "admin")
    for context_id, caller in (("hers", ann), ("shared", ann), ("unowned", ANONYMOUS)):
        await log.create(submitted(f"t-{context_id}", context_id), caller)
    assert await log.share("shared", frozenset({"sre", "ops"}))
    owned = ConversationAccess(ann.owner)
    shared = ConversationAccess(ann.owner, None, frozenset({"sre", "ops"}))
    for viewer, expected in (
        (ann, {"hers": owned, "shared": shared}),
        (bob, {"shared": shared}),
        (Principal("token", "carl"), {}),
        (admin, {"hers": owned, "shared": shared, "unowned": UNOWNED}),
    ):
        rows = (await log.conversations(ConversationQuery(search_words("hello"), viewer=viewer))).rows
        assert {row.id: row.access for row in rows} == expected


async def test_the_history_of_a_conversation_has_times_and_callers(log: EventLog) -> None:
    assert await log.histories("c") == []
    before = time.time_ns()
    person = Principal("token", "ada", frozenset())
    await log.create(submitted())
    writer = Writer(log)
    await log.append("t", begin(writer.state))
    await writer.write(TextDelta("supervisor", "m0", "hm"), QUESTION)
    await log.add_message("t", message("q2"), person)
    await (await Writer(log, "other", "d").begin()).write(ANSWER)
    await Writer(log, "t2").begin()
    first, second = await log.histories("c")
    assert [first.submitted.id, second.submitted.id] == ["t", "t2"]
    assert (first.state, second.state) == (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_WORKING)
    assert [entry.event for entry in first.entries()] == [entry.event for entry in await log.read("t")]
    assert [seq_of(entry.event) for entry in first.entries()] == [1, 2, 3, 4]
    times = [before, first.created_ns, *first.times, time.time_ns()]
    assert times == sorted(times)
    assert len(first.times) == 4
    (sent,) = first.messages
    assert (sent.after, sent.message.message_id, sent.caller) == (4, "q2", person)
    await writer.write(ANSWER)
    ended, _ = await log.histories("c")
    assert (ended.state, len(ended.events), ended.messages) == (TaskState.TASK_STATE_COMPLETED, 6, first.messages)
    assert ended.changed_ns == (await log.tasks(TaskQuery(context_id="c"))).tasks[0].status.timestamp.ToNanoseconds()


async def test_which_task_of_a_conversation_waits(log: EventLog) -> None:
    assert await log.waiting("c") is None
    writers = {name: await Writer(log, name).begin() for name in ("t1", "t2", "t3")}
    await (await Writer(log, "other", "another").begin()).write(QUESTION)
    assert await log.waiting("c") is None
    for at, name in enumerate(("t1", "t2")):
        writers[name].state.clock = lambda at=at: 1_000.0 + at
        await writers[name].write(QUESTION)
        assert await log.waiting("c") == name

    await log.add_message("t2", message("q2"))
    assert await log.waiting("c") == "t2"
    await log.append("t2", begin(writers["t2"].state))
    assert await log.waiting("c") == "t1"
    writers["t1"].state.clock = lambda: 1_005.0
    await writers["t2"].write(QUESTION)
    await writers["t1"].write(QUESTION)
    assert await log.waiting("c") == "t1"
    await writers["t1"].write(Canceled())
    assert await log.waiting("c") == "t2"
    await writers["t2"].write(ANSWER)
    assert await log.waiting("c") is None
    assert await log.waiting("another") == "other"


async def test_which_tasks_have_waited_for_too_long(log: EventLog) -> None:
    for number, events in enumerate([(QUESTION,), (QUESTION,), (), (ANSWER,), (QUESTION,)]):
        writer = Writer(log, f"t{number}")
        writer.state.clock = lambda at=number: 1_000.0 - at
        await writer.begin()
        await writer.write(*events)
    assert await log.overdue(2_000 * 10**9) == ["t4", "t1", "t0"]
    assert await log.overdue(1_000 * 10**9) == ["t4", "t1"]
    assert await log.overdue(0) == []


async def test_only_what_still_waits_is_ended_for_waiting(log: EventLog, writer: Writer) -> None:
    ending = encode(writer.state, Canceled())
    assert await log.end_waiting("t", ending) == []
    await writer.write(QUESTION)
    answers, ends = await asyncio.gather(log.add_message("t", message("q2")), log.end_waiting("t", ending))
    assert answers is None
    assert ends == []
    await writer.write(QUESTION)
    ends, refused = await asyncio.gather(
        log.end_waiting("t", ending), log.add_message("t", message("q3")), return_exceptions=True
    )
    assert [entry.seq for entry in ends] == [6]
    assert isinstance(refused, TaskEndedError)
    assert await log.end_waiting("t", ending) == []
    assert await numbers(log.follow("t")) == [1, 2, 3, 4, 5, 6]
    with pytest.raises(UnknownTaskError):
        await log.end_waiting("nope", ending)


async def test_the_last_message_is_stored_with_its_caller_and_its_place(log: EventLog) -> None:
    asks = Principal("token", "ada", frozenset({"sre", "ops"}))
    await log.create(submitted(), asks)
    assert await log.request("t") == StoredRequest(message(), asks, 0)
    writer = Writer(log)
    await log.append("t", begin(writer.state))
    entries = await writer.write(QUESTION)
    await log.add_message("t", message("q2"))
    assert await log.request("t") == StoredRequest(message("q2"), ANONYMOUS, entries[-1].seq)
    assert await log.request("other") is None


async def test_a_message_that_is_sent_again_is_found_in_its_conversation(log: EventLog, writer: Writer) -> None:
    entries = await writer.write(QUESTION)
    await log.add_message("t", message("q2"))
    assert await log.find_message("c", "q1") == FoundMessage("t", 0)
    assert await log.find_message("c", "q2") == FoundMessage("t", entries[-1].seq)
    assert await log.find_message("c", "q3") is None
    assert await log.find_message("other", "q1") is None


async def test_of_principals_that_begin_one_conversation_at_once_one_owns_it(log: EventLog) -> None:
    people = [Principal("token", name) for name in ("ada", "bob")]
    tasks = [submitted(person.subject or "", "c") for person in people]
    results = await asyncio.gather(*map(log.create, tasks, people), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), ForeignConversationError]


async def test_of_messages_with_one_id_at_once_one_is_stored(log: EventLog) -> None:
    async with AsyncExitStack() as stack:
        logs = [log]
        if isinstance(log, PostgresEventLog):
            logs += [await stack.enter_async_context(reopened(log).opened()) for _ in range(2)]
        for number in range(10):
            conversation = f"c{number}"
            tasks = [submitted(f"t{number}-{place}", conversation, "q1") for place in range(6)]
            writes = [logs[place % len(logs)].create(task) for place, task in enumerate(tasks)]
            (winner,) = await stored(tasks, writes)
            found = FoundMessage(winner.id, 0)
            assert [await each.find_message(conversation, "q1") for each in logs] == [found] * len(logs)

            writes = [each.add_message(winner.id, message("q2")) for each in logs * 3]
            assert len(await stored(writes, writes)) == 1
            # It becomes the first message of a task or an answer, depending on when the form is read.
            other = submitted(f"t{number}", conversation, "q3")
            writes = [logs[0].create(other), logs[-1].add_message(winner.id, message("q3"))]
            assert len(await stored(writes, writes)) == 1

            for refused in (log.create(submitted("u", conversation, "q2")), log.add_message(winner.id, message("q1"))):
                with pytest.raises(RepeatedMessageError):
                    await refused
            await log.add_message(winner.id, message("q4"))
            task = await log.task(winner.id)
            assert task is not None
            assert [sent.message_id for sent in task.history if sent.message_id != "q3"] == ["q1", "q2", "q4"]


async def stored(items: Sequence[T], writes: Sequence[Awaitable[None]]) -> list[T]:
    """The items whose writes succeeded. All others were refused as repeated messages."""
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert all(result is None or isinstance(result, RepeatedMessageError) for result in results), results
    return [item for item, result in zip(items, results, strict=True) if result is None]


async def test_an_id_can_be_used_again_after_its_conversation_was_deleted(log: EventLog, writer: Writer) -> None:
    await log.add_message("t", message("q2"))
    await writer.write(ANSWER)
    await log.create(submitted("other", "d", "q1"))
    await log.delete_conversation("c")
    for task_id, message_id in (("t1", "q1"), ("t2", "q2")):
        await log.create(submitted(task_id, message_id=message_id))


async def test_a_claim_ends_the_one_before(log: EventLog, writer: Writer) -> None:
    first = await log.claim("t", 0)
    await log.append("t", encode(writer.state, deltas(1)[0]), first.epoch)
    second = await log.claim("t", 0)
    assert second.epoch > first.epoch
    for write in (
        log.append("t", encode(writer.state, ANSWER), first.epoch),
        log.begin_effect("t", "call", first.epoch),
        log.finish_effect("t", "call", "done", first.epoch),
    ):
        with pytest.raises(SupersededError):
            await write
    assert len(await log.read("t")) == 2
    await log.begin_effect("t", "call", second.epoch)
    await writer.write(ANSWER)
    with pytest.raises(TaskEndedError):
        await log.claim("t", 0)


async def test_only_a_task_without_events_is_claimed_as_new(log: EventLog, writer: Writer) -> None:
    assert await log.claim_new("t") is None
    await log.create(submitted("new"))
    first = await log.claim_new("new")
    again = await log.claim_new("new")  # by another process, before the first event
    assert first is not None
    assert again is not None
    assert (again.epoch, again.attempts) == (first.epoch + 1, 2)
    with pytest.raises(SupersededError):
        await log.append("new", begin(StreamState("new", "c", "trace")), first.epoch)
    await log.add_message("new", message("q2"))
    assert await log.claim_new("new") is None


async def test_a_task_is_not_claimed_as_new_while_another_one_waits_for_a_person(log: EventLog, writer: Writer) -> None:
    await log.create(submitted("next"))
    await log.create(submitted("elsewhere", "other"))
    await writer.write(QUESTION)
    assert await log.claim_new("next") is None
    assert await log.claim_new("elsewhere") is not None
    await log.end_waiting("t", encode(writer.state, Canceled()))
    assert await log.claim_new("next") is not None
    with pytest.raises(TaskEndedError):
        await log.claim_new("t")


async def test_claims_are_counted_until_there_is_progress(log: EventLog, writer: Writer) -> None:
    claims = [await log.claim("t", progress) for progress in (0, 0, 0, 3, 3, 4)]
    assert [claim.attempts for claim in claims] == [1, 2, 3, 1, 2, 1]
    assert claims == sorted(set(claims), key=lambda claim: claim.epoch)


async def test_an_effect_begins_once_and_keeps_its_result(log: EventLog, writer: Writer) -> None:
    assert await log.begin_effect("t", "call") is None
    assert await log.begin_effect("t", "call") == RecordedEffect(None)
    await log.finish_effect("t", "call", "the result")
    assert await log.begin_effect("t", "call") == RecordedEffect("the result")
    assert await log.begin_effect("t", "another") is None
    await Writer(log, "t2").begin()
    assert await log.begin_effect("t2", "call") is None


async def test_a_fact_is_recorded_once_and_read_by_the_beginning_of_its_name(log: EventLog, writer: Writer) -> None:
    assert await log.begin_effect("t", "approval/1/asked", result="by Ada") is None
    assert await log.begin_effect("t", "approval/1/asked", result="by Bob") == RecordedEffect("by Ada")
    assert await log.begin_effect("t", "approval/1/used") is None
    await log.begin_effect("t", "approval/2/asked", result="by Bob")
    await Writer(log, "t2").begin()
    await log.begin_effect("t2", "approval/1/asked", result="elsewhere")
    assert await log.effects("t", "approval/1/") == {
        "approval/1/asked": RecordedEffect("by Ada"),
        "approval/1/used": RecordedEffect(None),
    }
    assert await log.effects("nope", "approval/") == {}


async def test_unfinished_tasks_are_those_with_work_to_do(log: EventLog) -> None:
    for task_id in ("queued", "running", "waiting", "answered", "ended"):
        writer = Writer(log, task_id, f"c-{task_id}")
        await log.create(submitted(task_id, f"c-{task_id}"))
        if task_id != "queued":
            await log.append(task_id, begin(writer.state))
        if task_id in ("waiting", "answered"):
            await writer.write(QUESTION)
        if task_id == "answered":
            await log.add_message(task_id, message("q2"))
        if task_id == "ended":
            await writer.write(ANSWER)
    assert await log.unfinished() == [(each, f"c-{each}") for each in ("queued", "running", "answered")]


async def test_deleting_a_conversation_leaves_its_open_tasks_and_other_conversations(log: EventLog) -> None:
    for task_id, context_id in (("one", "c"), ("two", "c"), ("other", "d")):
        await (await Writer(log, task_id, context_id).begin()).write(ANSWER)
    waiting = await Writer(log, "waiting", "c").begin()
    await waiting.write(QUESTION)
    assert await log.delete_conversation("c") == 2
    assert [await log.state(task_id) for task_id in ("one", "two")] == [None, None]
    with pytest.raises(UnknownTaskError):
        await log.read("one")
    assert await log.waiting("c") == "waiting"
    assert {task.id for task in (await log.tasks(TaskQuery())).tasks} == {"waiting", "other"}
    await log.add_message("waiting", message("q2"))
    await waiting.write(ANSWER)
    assert await log.delete_conversation("c") == 1
    assert await log.delete_conversation("c") == 0
    await (await Writer(log, "later", "d").begin()).write(ANSWER)
    assert [await log.state(task_id) for task_id in ("one", "two", "waiting")] == [None, None, None]
    assert await log.prune(max_tasks=0, max_age_days=0) == {"d"}


async def test_pruning_drops_what_has_ended_and_names_conversations_of_which_nothing_is_left(log: EventLog) -> None:
    for number in range(6):
        writer = await Writer(log, f"t{number}", f"c{number}").begin()
        await writer.write(QUESTION if number < 2 else ANSWER)
    await Writer(log, "again", "c2").begin()
    assert await log.prune(max_tasks=10, max_age_days=1) == frozenset()
    assert await log.prune(max_tasks=1, max_age_days=0) == {"c3", "c4"}
    assert await log.prune(max_tasks=0, max_age_days=0) == {"c5"}
    assert {task.id for task in (await log.tasks(TaskQuery())).tasks} == {"t0", "t1", "again"}
    assert [await log.waiting(f"c{number}") for number in range(3)] == ["t0", "t1", None]


@pytest.mark.parametrize("log", DURABLE, indirect=True)
async def test_a_write_that_a_run_waits_for_is_committed_at_once_with_the_events_before_it(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("writer", "postgres.writer"):
        monkeypatch.setattr(f"ai_platform_engineering.storage.event_log.{module}.BATCH_SECONDS", 3600)
    writer = await Writer(log).begin()
    waiting = asyncio.create_task(writer.write(TextDelta("supervisor", "m1", "Hello")))
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done, "it waits for a batch"
    await asyncio.wait_for(log.begin_effect("t", "call"), 90)
    await asyncio.wait_for(waiting, 90)
    await asyncio.wait_for(writer.write(FinalResult("Hello", "m1")), 90)


@pytest.mark.parametrize("kind", DURABLE)
@given(run=runs(), data=st.data())
@settings(max_examples=25, deadline=None)
def test_all_logs_tell_the_same_story(make_log: MakeLog, kind: str, run: list[Event], data: st.DataObject) -> None:
    """Written in pieces of any size; read whole, folded at every place, before and after the log was closed."""
    state = StreamState("t", "c", "trace", clock=lambda: 1.0)
    updates = [*begin(state), *(update for event in run for update in encode(state, event))]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(updates)), max_size=4)) | {len(updates)})
    task = submitted()

    async def write(log: EventLog) -> None:
        await log.create(task)
        for start, end in zip([0, *cuts], cuts, strict=False):
            await log.append("t", updates[start:end])

    async def story(log: EventLog) -> list[Any]:
        snapshots = [await log.snapshot("t", at=at) for at in [*range(0, len(updates) + 1, 3), None]]
        listed = (await log.tasks(TaskQuery())).tasks
        return [await log.state("t"), await log.read("t"), *snapshots, listed, await numbers(log.follow("t"))]

    async def compare() -> None:
        memory = MemoryEventLog()
        await write(memory)
        expected = await story(memory)
        with tempfile.TemporaryDirectory() as folder:
            log = make_log(kind, Path(folder))
            async with log.opened():
                await write(log)
                assert await story(log) == expected
            async with reopened(log).opened() as again:
                assert (await again.tasks(TaskQuery())).tasks == expected[-2]
                assert await story(again) == expected

    asyncio.run(compare())


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_any_interleaving_of_writers_and_followers(make_log: MakeLog, kind: str, seed: int) -> None:
    """Each follower sees what comes after the place it starts from, once and in order, whatever happens meanwhile."""
    chance = random.Random(seed)  # noqa: S311

    async def pauses() -> None:
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(chance.choice([0, 0, 0.001]))

    async def work(log: EventLog, task_id: str, ready: asyncio.Event) -> int:
        writer = await Writer(log, task_id).begin()
        ready.set()
        for _ in range(chance.randrange(1, 6)):
            await asyncio.gather(*(writer.write(*deltas(chance.randrange(1, 4))) for _ in range(chance.randrange(3))))
            await pauses()
        if chance.random() < 0.3:
            await writer.write(QUESTION)
            await log.add_message(task_id, message(f"q2 of {task_id}"))
            await pauses()
            await writer.write(*deltas(2))
        return (await writer.write(ANSWER))[-1].seq

    async def follow(log: EventLog, task_id: str, ready: asyncio.Event) -> tuple[int, list[int]]:
        await ready.wait()
        await pauses()
        after = chance.choice([0, 1, len(await log.read(task_id))])
        seen = await numbers(log.follow(task_id, after))
        while await log.state(task_id) != TaskState.TASK_STATE_COMPLETED:  # the stream ended at a pause
            await asyncio.sleep(0.001)
            seen += await numbers(log.follow(task_id, seen[-1] if seen else after))
        rest = await numbers(log.follow(task_id, seen[-1] if seen else after))
        return after, seen + rest

    async def all_at_once() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with make_log(kind, Path(folder)).opened() as log:
                ready = {f"t{number}": asyncio.Event() for number in range(3)}
                writers = [asyncio.create_task(work(log, name, event)) for name, event in ready.items()]
                readers = [
                    (place, asyncio.create_task(follow(log, name, event)))
                    for place, (name, event) in enumerate(ready.items())
                    for _ in range(4)
                ]
                lasts = await asyncio.gather(*writers)
                for place, reader in readers:
                    after, seen = await reader
                    assert seen == list(range(after + 1, lasts[place] + 1))

    asyncio.run(all_at_once())
