"""The log in a file: what is there after a restart, how it fails, what it costs to look at."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from a2a.types.a2a_pb2 import TaskState

from ai_platform_engineering.events import (
    AgentStarted,
    Event,
    Failed,
    FinalResult,
    Form,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    TextDelta,
    ToolStarted,
)
from ai_platform_engineering.storage.event_log.conversations import ConversationQuery
from ai_platform_engineering.storage.event_log.event_log import TaskQuery
from ai_platform_engineering.storage.event_log.file import (
    FORMAT,
    WAITS,
    LogFile,
    LogFileError,
    LogInUseError,
    open_for_reading,
)
from ai_platform_engineering.storage.event_log.log_errors import LogClosedError, LogWriteError, RequestNotStoredError
from ai_platform_engineering.storage.event_log.reader import read_conversations, read_page, read_waiting
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from ai_platform_engineering.utils.a2a_common.protocol import WAITING_STATES
from ai_platform_engineering.utils.a2a_common.server.log_maintenance import end_interrupted
from ai_platform_engineering.utils.a2a_common.wire import Decoder, StreamState, begin, encode
from tests.invariants import check
from tests.servers import ROOT
from tests.storage.event_log.test_log_contract import ANSWER, QUESTION, Writer, deltas, message, numbers, submitted

DAY_NS = 86_400 * 10**9


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


@pytest.fixture
async def log(path: Path) -> AsyncIterator[SqliteEventLog]:
    async with SqliteEventLog(path).opened() as opened:
        yield opened


async def events_of(log: SqliteEventLog, task_id: str = "t") -> list[Event]:
    decoder = Decoder("supervisor")
    return [event for entry in await log.read(task_id) for event in decoder.feed(entry.event)]


async def test_it_is_in_the_file_before_anybody_sees_it(log: SqliteEventLog, path: Path) -> None:
    await Writer(log).begin()
    with closing(open_for_reading(path)) as reader:

        async def follow() -> list[tuple[int, int]]:
            return [
                (entry.seq, reader.execute("SELECT max(seq) FROM event").fetchone()[0])
                async for entries in log.follow("t")
                for entry in entries
            ]

        following = asyncio.create_task(follow())
        writer = Writer(log)
        for _ in range(20):
            await writer.write(*deltas(3))
        await writer.write(ANSWER)
        seen = await following
    assert len(seen) == 63
    assert all(stored >= shown for shown, stored in seen)


async def test_tasks_at_once_share_their_commits(log: SqliteEventLog) -> None:
    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement == "COMMIT"

    log._parts.writer._connection.set_trace_callback(count)
    writers = [await Writer(log, f"t{number}").begin() for number in range(32)]
    commits = 0
    await asyncio.gather(*(writer.write(*deltas(3)) for writer in writers for _ in range(5)))
    assert commits < 10


async def test_another_writer_does_not_block_the_event_loop(log: SqliteEventLog, path: Path) -> None:
    writer = await Writer(log).begin()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(writer.write(*deltas(3)))
        done, _ = await asyncio.wait({writing}, timeout=0.1)
        assert not done
        other.execute("COMMIT")
        await asyncio.wait_for(writing, 90)
    assert len(await events_of(log)) == 3


def test_opening_waits_for_a_short_lock_of_the_file(path: Path) -> None:
    LogFile(path).close()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        later = threading.Timer(0.3, other.execute, ["COMMIT"])
        later.start()
        LogFile(path).close()
        later.join()


async def test_a_lock_that_is_never_released_ends_the_wait(
    log: SqliteEventLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ai_platform_engineering.storage.event_log.writer._BUSY_SECONDS", 0.05)
    writer = await Writer(log).begin()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogWriteError):
            await writer.write(*deltas(3))
    await writer.write(*deltas(3))
    assert len(await events_of(log)) == 3


async def test_the_state_of_a_task_is_stored_without_a_commit_of_its_own(path: Path) -> None:
    folded = "SELECT id FROM task WHERE folded IS NOT NULL ORDER BY id"
    with closing(sqlite3.connect(path)) as reader:
        async with SqliteEventLog(path).opened() as log:
            for name in ("t1", "t2"):
                writer = await Writer(log, name).begin()
                await writer.write(ANSWER)
            await asyncio.sleep(0.05)
            assert reader.execute(folded).fetchall() == [("t1",)]
        assert reader.execute(folded).fetchall() == [("t1",), ("t2",)]


async def test_a_running_task_is_followed_without_reading_the_file(log: SqliteEventLog) -> None:
    writer = await Writer(log).begin()
    log._readers.close()
    follower = asyncio.create_task(numbers(log.follow("t")))
    await writer.write(*deltas(5))
    await log.snapshot("t", at=3)
    await writer.write(ANSWER)
    assert await follower == list(range(1, 9))
    assert await log.state("t") == TaskState.TASK_STATE_COMPLETED


def test_a_file_of_this_user_alone(path: Path) -> None:
    LogFile(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_what_was_parked_waits_on_after_a_restart(path: Path) -> None:
    async with SqliteEventLog(path).opened() as log:
        writer = await Writer(log).begin()
        await writer.write(QUESTION)
    async with SqliteEventLog(path).opened() as log:
        await end_interrupted(log, "supervisor")
        assert await log.state("t") == TaskState.TASK_STATE_INPUT_REQUIRED
        assert await numbers(log.follow("t")) == [1, 2, 3]
        await log.add_message("t", message("q2"))
        writer.log = log
        await writer.write(ANSWER)
        assert await numbers(log.follow("t", after=3)) == [4, 5]


async def test_a_form_whose_answer_was_not_worked_on_is_shown_again(path: Path) -> None:
    form = InputRequired((Form("form-1", "Which?", description="Say which."),))
    async with SqliteEventLog(path).opened() as log:
        await (await Writer(log).begin()).write(form)
        await log.add_message("t", message("q2"))
    async with SqliteEventLog(path).opened() as log:
        await end_interrupted(log, "supervisor")
        assert await log.state("t") == TaskState.TASK_STATE_INPUT_REQUIRED
        assert [event for event in await events_of(log) if isinstance(event, InputRequired)] == [form, form]
        assert await numbers(log.follow("t")) == [1, 2, 3, 4, 5]
        await end_interrupted(log, "supervisor")
        assert len(await log.read("t")) == 5


async def test_what_was_being_worked_on_ends_with_a_sentence_and_nothing_open(path: Path) -> None:
    plan = PlanUpdated((PlanStep("s1", "Look", "in_progress", 0, "argocd"), PlanStep("s2", "Tell", "pending", 1)))
    shown: list[Event] = [
        TextDelta("supervisor", "m0", "Let me see."),
        MessageEnded("supervisor", "m0"),
        plan,
        AgentStarted("argocd", "c1", plan_step_id="s1"),
        ToolStarted("argocd", "version", "c2", "c1", "s1"),
        TextDelta("argocd", "m1", "Looking", "c1"),
    ]
    async with SqliteEventLog(path).opened() as log:
        await (await Writer(log, "begun").begin()).write(*shown)
        await log.create(submitted("waiting"))
        ended = await Writer(log, "ended").begin()
        await ended.write(ANSWER)
    async with SqliteEventLog(path).opened() as log:
        await end_interrupted(log, "supervisor")
        events = await events_of(log, "begun")
        assert events[: len(shown)] == shown
        ending = check(events)
        assert ending == Failed(
            "stopped",
            "The supervisor was stopped while it worked on this. Outcome unknown: Argocd version. "
            "Check before asking again.",
        )
        last_plan = [event for event in events if isinstance(event, PlanUpdated)][-1]
        assert [step.status for step in last_plan.steps] == ["failed", "pending"]
        assert await log.state("waiting") == TaskState.TASK_STATE_FAILED
        assert await log.state("ended") == TaskState.TASK_STATE_COMPLETED
        for task_id in ("begun", "waiting"):
            seen = await numbers(log.follow(task_id))
            assert seen == list(range(1, len(seen) + 1))
        await end_interrupted(log, "supervisor")
        assert await events_of(log, "begun") == events


async def test_a_second_process_is_refused_and_readers_are_not(log: SqliteEventLog, path: Path) -> None:
    await (await Writer(log).begin()).write(ANSWER)
    code = (
        "import sys; from pathlib import Path;"
        "from ai_platform_engineering.storage.event_log.file import LogFile, open_for_reading;"
        "path = Path(sys.argv[1]);"
        "print(open_for_reading(path).execute('SELECT count(*) FROM event').fetchone()[0]);"
        "LogFile(path)"
    )
    result = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.stdout == "3\n"
    assert f"{path} is being written by another process." in result.stderr
    assert "DATA_DIR" in result.stderr
    with pytest.raises(LogInUseError):
        LogFile(path)


def test_the_file_is_free_again_after_a_kill(path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path;"
        "from ai_platform_engineering.storage.event_log.file import LogFile;"
        "file = LogFile(Path(sys.argv[1])); print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        with pytest.raises(LogInUseError):
            LogFile(path)
        process.send_signal(signal.SIGKILL)
        process.wait()
    LogFile(path).close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"this is not a database, whatever its name says" * 100, "file is not a database"),
        (None, "newer version of this product (format 99"),
    ],
)
def test_files_that_cannot_be_used_are_named_with_the_way_out(path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        path.write_bytes(content)
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 99")
    with pytest.raises(LogFileError) as refused:
        LogFile(path)
    assert str(path) in str(refused.value)
    assert words in str(refused.value)
    assert "DATA_DIR" in str(refused.value)
    if content is not None:
        assert path.read_bytes() == content
    else:
        with pytest.raises(LogFileError, match="format 99"):
            open_for_reading(path)


async def test_a_file_without_names_of_conversations_gets_them(path: Path) -> None:
    async with SqliteEventLog(path).opened() as log:
        await (await Writer(log).begin()).write(ANSWER)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("DROP TABLE conversation; DROP TABLE access; PRAGMA user_version = 2")
    with closing(open_for_reading(path)) as connection:
        (row,) = read_conversations(connection, ConversationQuery()).rows
        assert (row.id, row.name) == ("c", None)
    async with SqliteEventLog(path).opened() as log:
        assert await log.rename("c", "Versions")
    with closing(open_for_reading(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        assert read_conversations(connection, ConversationQuery(("versions",))).rows[0].name == "Versions"


async def test_a_name_that_cannot_be_stored_is_refused(path: Path) -> None:
    async with SqliteEventLog(path).opened() as log:
        await Writer(log).begin()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TABLE conversation")
        with pytest.raises(RequestNotStoredError):
            await log.rename("c", "Versions")


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LogFileError, match=r"Not a directory|File exists"):
        LogFile(tmp_path / "file" / "tasks.db")


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from ai_platform_engineering.events import Failed, TextDelta
from ai_platform_engineering.storage.event_log.log_errors import LogWriteError
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from tests.storage.event_log.test_log_contract import ANSWER, Writer, deltas, numbers

async def main():
    path = Path(sys.argv[1])
    async with SqliteEventLog(path).opened() as log:
        victim, other = await Writer(log, "victim").begin(), await Writer(log, "other").begin()
        await victim.write(*deltas(2))
        following = asyncio.create_task(numbers(log.follow("victim")))
        wal = path.with_name("tasks.db-wal")
        resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size, resource.RLIM_INFINITY))
        try:
            await victim.write(TextDelta("supervisor", "m1", "x" * 100_000))
        except LogWriteError as error:
            print(error)
        await victim.write(Failed("unavailable", "The disk is full."))
        print(await following, await log.state("victim"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await other.write(ANSWER)
    async with SqliteEventLog(path).opened() as log:
        print(await numbers(log.follow("victim")), await log.state("victim"))
        print(await numbers(log.follow("other")), await log.state("other"))

asyncio.run(main())
"""


async def test_a_full_disk_ends_the_run_keeps_what_was_shown_and_is_forgiven(path: Path) -> None:
    result = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", FULL_DISK, path],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    refused, shown, stored, other = result.stdout.splitlines()
    assert refused == str(LogWriteError("disk"))
    assert shown == stored == "[1, 2, 3, 4] 4"
    assert other == "[1, 2, 3] 3"
    assert "tasks.db" in result.stderr


async def test_a_failed_write_leaves_no_gap_and_harms_no_other(
    log: SqliteEventLog, caplog: pytest.LogCaptureFixture
) -> None:
    writer, other = await Writer(log).begin(), await Writer(log, "other").begin()
    log._parts.writer._connection.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON main.event WHEN NEW.task = 1 AND length(NEW.body) > 5000"
        " BEGIN SELECT raise(FAIL, 'no room'); END"
    )
    large = TextDelta("supervisor", "m1", "x" * 10_000)
    with caplog.at_level(logging.CRITICAL):
        results = await asyncio.gather(
            writer.write(*deltas(1)),
            writer.write(large),
            writer.write(*deltas(1)),
            other.write(large),
            return_exceptions=True,
        )
    assert [isinstance(result, LogWriteError) for result in results] == [False, True, True, False]
    await writer.write(ANSWER)
    assert await numbers(log.follow("t")) == [1, 2, 3, 4]
    assert [entry.seq for entry in await log.read("other")] == [1, 2]


async def test_after_its_end_it_says_so(path: Path) -> None:
    log = SqliteEventLog(path)
    with pytest.raises(LogClosedError):
        await log.create(submitted())
    async with log.opened():
        await log.create(submitted())
    with pytest.raises(LogClosedError):
        await log.append("t", begin(StreamState("t", "c", "trace")))


async def ended(log: SqliteEventLog, task_id: str, context_id: str = "c") -> None:
    await (await Writer(log, task_id, context_id).begin()).write(ANSWER)


def age(path: Path, days: float, *task_ids: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for task_id in task_ids:
            connection.execute(
                "UPDATE task SET ended_ns = ? WHERE id = ?", (time.time_ns() - int(days * DAY_NS), task_id)
            )


async def test_old_tasks_are_dropped_with_conversations_of_which_nothing_is_left(
    log: SqliteEventLog, path: Path
) -> None:
    for number in range(30):
        await ended(log, f"old{number}", f"c{number}")
    await ended(log, "new", "c0")
    await Writer(log, "running", "c1").begin()
    await (await Writer(log, "parked", "c2").begin()).write(QUESTION)
    age(path, 31, *(f"old{number}" for number in range(30)))

    assert await log.prune(max_tasks=100, max_age_days=0) == frozenset()
    gone = await log.prune(max_tasks=100, max_age_days=30)
    assert gone == {f"c{number}" for number in range(3, 30)}
    page = await log.tasks(TaskQuery(limit=100))
    assert {task.id for task in page.tasks} == {"new", "running", "parked"}
    assert await log.task("old3") is None
    with closing(open_for_reading(path)) as reader:
        assert reader.execute("SELECT count(DISTINCT task) FROM event").fetchone() == (3,)


async def test_too_many_tasks_are_dropped_oldest_end_first(log: SqliteEventLog) -> None:
    await Writer(log, "running").begin()
    for number in range(50):
        await ended(log, f"t{number}")
    await log.prune(max_tasks=5, max_age_days=30)
    page = await log.tasks(TaskQuery(limit=100))
    assert {task.id for task in page.tasks} == {"running", *(f"t{number}" for number in range(45, 50))}


async def test_a_dropped_task_is_still_followed_to_its_end(log: SqliteEventLog) -> None:
    writer = await Writer(log).begin()
    reader = log.follow("t")
    assert [entry.seq for entry in await anext(reader)] == [1]
    await writer.write(ANSWER)
    await log.prune(max_tasks=0, max_age_days=0)
    assert await log.state("t") is None
    assert await numbers(reader) == [2, 3]


@pytest.mark.long
async def test_more_events_than_are_kept_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [TextDelta("supervisor", "m1", "word ") for _ in range(196)]
    async with SqliteEventLog(path).opened() as log:

        async def one(number: int) -> None:
            state = StreamState(f"t{number}", f"c{number % 7}", "trace")
            await log.create(submitted(state.task_id, state.context_id))
            events = [*words, MessageEnded("supervisor", "m1"), FinalResult("word " * 196, "m1")]
            await log.append(state.task_id, begin(state) + [u for event in events for u in encode(state, event)])

        for start in range(0, 150, 50):
            await asyncio.gather(*map(one, range(start, start + 50)))

    async with SqliteEventLog(path).opened() as log:
        began = time.process_time()
        page = await log.tasks(TaskQuery(limit=50))
        assert page.total == 150
        assert len(page.tasks) == 50
        task = await log.task("t75")
        assert task is not None
        assert len(await log.read("t75")) == 200
        assert time.process_time() - began < 2
        assert not log._cache.running
        assert log._cache.ended_events <= 20_000

    with closing(open_for_reading(path)) as reader:
        statements: list[str] = []
        reader.set_trace_callback(statements.append)
        read_page(reader, TaskQuery(state=TaskState.TASK_STATE_COMPLETED, limit=50))
        reader.set_trace_callback(None)
        assert len(statements) == 2
        plans = [
            row[3]
            for query in (
                "SELECT id FROM task ORDER BY changed_ns DESC, id DESC LIMIT 50",
                "SELECT id FROM task WHERE state = 3 ORDER BY changed_ns DESC, id DESC LIMIT 50",
                "SELECT id FROM task WHERE context_id = 'c1' ORDER BY changed_ns DESC, id DESC LIMIT 50",
                "SELECT body FROM event WHERE task = 75 ORDER BY seq",
                f"SELECT id FROM task WHERE context_id = 'c1' AND {WAITS} ORDER BY changed_ns DESC LIMIT 1",  # noqa: S608
            )
            for row in reader.execute(f"EXPLAIN QUERY PLAN {query}")
        ]
    assert all("INDEX" in plan or "PRIMARY KEY" in plan for plan in plans), plans
    assert not any("TEMP B-TREE" in plan for plan in plans), plans
    assert "task_waiting" in plans[-1]


def test_the_file_and_the_log_agree_on_who_waits() -> None:
    assert f"state IN ({', '.join(str(state) for state in sorted(WAITING_STATES))})" == WAITS


async def test_who_waits_is_found_in_a_file_that_was_made_without_an_index_for_it(path: Path) -> None:
    async with SqliteEventLog(path).opened() as log:
        await (await Writer(log).begin()).write(QUESTION)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP INDEX task_waiting")
    async with SqliteEventLog(path).opened() as log:
        assert await log.waiting("c") == "t"
    with closing(open_for_reading(path)) as reader:
        (plan,) = reader.execute(f"EXPLAIN QUERY PLAN SELECT id FROM task WHERE context_id = 'c' AND {WAITS}")  # noqa: S608
    assert "task_waiting" in plan[3]


async def test_who_waits_is_asked_of_the_file_and_not_of_the_events(log: SqliteEventLog, path: Path) -> None:
    with closing(open_for_reading(path)) as reader:
        for number in range(50):
            await (await Writer(log, f"t{number}", f"c{number % 10}").begin()).write(*deltas(20), QUESTION)
        statements: list[str] = []
        reader.set_trace_callback(statements.append)
        assert read_waiting(reader, "c7") == "t47"
        assert read_waiting(reader, "unknown") is None
        reader.set_trace_callback(None)
    assert len(statements) == 2
    assert not any("event" in statement or "submitted" in statement for statement in statements)


@pytest.mark.long
async def test_tasks_that_wait_take_no_memory(log: SqliteEventLog) -> None:
    async def park(first: int, last: int) -> int:
        for start in range(first, last, 50):
            writers = [Writer(log, f"t{number}", f"c{number}") for number in range(start, start + 50)]
            await asyncio.gather(*(writer.begin() for writer in writers))
            await asyncio.gather(*(writer.write(*deltas(8), QUESTION) for writer in writers))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        used = [await park(0, 100), await park(100, 250), await park(250, 400)]
    finally:
        tracemalloc.stop()
    # A dictionary that is resized once, or a module that is imported meanwhile, is no growth with each task.
    assert min(after - before for before, after in itertools.pairwise(used)) < 150 * 200
    # The memory of protobuf is not traced; readers hold only the last few events.
    assert len(log._cache) <= 100
    assert await log.waiting("c5") == "t5"
    assert len(await log.read("t5")) == 11
