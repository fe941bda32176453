"""The log in Postgres that several processes share: what each sees of the others, and what an outage costs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from copy import deepcopy
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from a2a.types.a2a_pb2 import Role, TaskState

from ai_platform_engineering.events import Canceled, Failed, TextDelta
from ai_platform_engineering.storage.event_log.event_log import (
    Claim,
    FoundMessage,
    RecordedEffect,
    RepeatedMessageError,
    SupersededError,
    TaskEndedError,
    TaskQuery,
    UnknownTaskError,
)
from ai_platform_engineering.storage.event_log.log_errors import (
    LogClosedError,
    LogReadError,
    LogWriteError,
    RequestNotStoredError,
)
from ai_platform_engineering.storage.event_log.postgres import log as postgres_log
from ai_platform_engineering.storage.event_log.postgres import writer as log_writer
from ai_platform_engineering.storage.event_log.postgres.log import PostgresEventLog
from ai_platform_engineering.storage.event_log.postgres.schema import CLAIMED, LogAddress, LogDatabaseError
from ai_platform_engineering.utils.a2a_common.wire import begin, encode
from tests.servers import ROOT
from tests.services.postgres import PASSWORD, PostgresServer, disconnect_all, new_database
from tests.storage.event_log.test_log_contract import ANSWER, QUESTION, Writer, deltas, message, numbers, submitted

pytest_plugins = ("tests.services.fixtures",)

pytestmark = pytest.mark.process

SECONDS = 90


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> Iterator[str]:
    with new_database(postgres.address()) as address:
        yield address


@pytest.fixture
def server() -> str:
    """The name of a server with no tasks in the database."""
    return f"server-{uuid4().hex}"


@pytest.fixture
async def logs(database: str, server: str) -> AsyncIterator[tuple[PostgresEventLog, PostgresEventLog]]:
    """Two replicas of one server."""
    async with AsyncExitStack() as stack:
        first, second = (PostgresEventLog(LogAddress(database), server) for _ in range(2))
        yield await stack.enter_async_context(first.opened()), await stack.enter_async_context(second.opened())


@pytest.fixture
async def log(database: str, server: str) -> AsyncIterator[PostgresEventLog]:
    async with PostgresEventLog(LogAddress(database), server).opened() as opened:
        yield opened


def query(database: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(psycopg.connect(database, autocommit=True)) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


@asynccontextmanager
async def followed(log: PostgresEventLog, task_id: str = "t") -> AsyncIterator[asyncio.Task[list[int]]]:
    """The numbers that a follower sees. It has seen the first ones when the block begins."""
    entries = log.follow(task_id)
    first = [entry.seq for entry in await asyncio.wait_for(anext(entries), SECONDS)]

    async def follow() -> list[int]:
        return first + await numbers(entries)

    following = asyncio.create_task(follow())
    yield following
    await asyncio.wait_for(following, SECONDS)


async def test_followers_on_another_replica_see_everything_once_and_in_order(
    logs: tuple[PostgresEventLog, PostgresEventLog],
) -> None:
    here, there = logs
    writer = await Writer(here).begin()
    async with followed(there) as following:
        for _ in range(20):
            await writer.write(*deltas(3))
        await writer.write(QUESTION)
    asked = 1 + 60 + 2
    assert following.result() == [*range(1, asked + 1)]
    assert await there.waiting("c") == "t"

    await there.add_message("t", message("q2"))
    assert await here.find_message("c", "q2") == FoundMessage("t", asked)
    assert await here.unfinished() == [("t", "c")]
    async with followed(there) as following:
        await writer.write(*deltas(2))
        await writer.write(ANSWER)
    assert following.result() == [*range(1, asked + 5)]
    for log in logs:
        task = await log.task("t")
        assert task is not None
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        assert [said.message_id for said in task.history if said.role == Role.ROLE_USER] == ["q1", "q2"]
    assert await here.task("t") == await there.task("t")
    assert await here.read("t") == await there.read("t")


async def test_a_message_at_another_replica_keeps_its_place_among_the_events(
    logs: tuple[PostgresEventLog, PostgresEventLog],
) -> None:
    """The replica that writes the events learns of the message after it has written the next events."""
    here, there = logs
    writer = await Writer(here).begin()
    # Both replicas write the same event.
    writer.state.clock = lambda: 5_000_000_000.0
    await writer.write(QUESTION)
    await there.add_message("t", message("q2"))
    replica = here._replicas.get("t")
    assert replica is not None
    working = begin(writer.state)
    replica.record.append(deepcopy(working))
    await there.append("t", working)
    tasks = [await log.task("t", at=at) for log in logs for at in (3, 4, None)]
    said = [[said.message_id for said in task.history if said.role == Role.ROLE_USER] for task in tasks if task]
    assert said == [["q1"], ["q1", "q2"], ["q1", "q2"]] * 2
    assert await here.task("t") == await there.task("t")


async def test_replicas_that_append_to_one_task_share_its_numbers(
    logs: tuple[PostgresEventLog, PostgresEventLog],
) -> None:
    await Writer(logs[0]).begin()

    async def write(log: PostgresEventLog) -> list[int]:
        writer = Writer(log)
        return [entry.seq for _ in range(30) for entry in await writer.write(*deltas(3))]

    async with followed(logs[0]) as here, followed(logs[1]) as there:
        given = await asyncio.gather(*(write(log) for log in logs))
        assert sorted(given[0] + given[1]) == [*range(2, 182)]
        await Writer(logs[1]).write(Canceled())
    assert here.result() == there.result() == [*range(1, 183)]


async def test_a_claim_by_another_replica_ends_the_one_here(logs: tuple[PostgresEventLog, PostgresEventLog]) -> None:
    here, there = logs
    writer = await Writer(here).begin()
    mine = await here.claim("t", 0)
    assert await here.begin_effect("t", "call", mine.epoch) is None
    theirs = await there.claim("t", 0)
    assert (theirs.epoch, theirs.attempts) == (mine.epoch + 1, 2)
    for write in (
        here.append("t", encode(writer.state, ANSWER), mine.epoch),
        here.begin_effect("t", "another", mine.epoch),
        here.finish_effect("t", "call", "done", mine.epoch),
    ):
        with pytest.raises(SupersededError):
            await write
    assert await there.begin_effect("t", "call", theirs.epoch) == RecordedEffect(None)
    assert await there.append("t", encode(writer.state, ANSWER), theirs.epoch)
    with pytest.raises(TaskEndedError):
        await here.append("t", encode(writer.state, ANSWER), theirs.epoch)
    with pytest.raises(SupersededError):
        await here.append("t", encode(writer.state, ANSWER), mine.epoch)
    with pytest.raises(TaskEndedError):
        await here.add_message("t", message("q2"))


async def test_a_claim_ends_the_transaction_of_a_process_that_was_stopped_in_it(
    log: PostgresEventLog, database: str
) -> None:
    await Writer(log).begin()
    claim = await log.claim("t", 0)
    async with await psycopg.AsyncConnection.connect(database) as stopped:
        await stopped.execute(CLAIMED, {"run_task": "t", "run_epoch": claim.epoch})
        assert (await log.claim("t", 0)).epoch == claim.epoch + 1
        with pytest.raises(psycopg.OperationalError):
            await stopped.commit()


async def test_of_an_answer_and_an_expiry_at_two_replicas_one_counts(
    logs: tuple[PostgresEventLog, PostgresEventLog],
) -> None:
    here, there = logs
    for number in range(10):
        task_id = f"t{number}"
        writer = await Writer(here, task_id).begin()
        await writer.write(QUESTION)
        answered, ended = await asyncio.gather(
            here.add_message(task_id, message(f"q2 of {task_id}")),
            there.end_waiting(task_id, encode(writer.state, Canceled())),
            return_exceptions=True,
        )
        assert isinstance(answered, TaskEndedError) == bool(ended)


async def test_deleted_tasks_are_gone_at_every_replica(logs: tuple[PostgresEventLog, PostgresEventLog]) -> None:
    here, there = logs
    await (await Writer(here).begin()).write(ANSWER)
    assert len(await there.read("t")) == 3
    assert await here.prune(max_tasks=0, max_age_days=0) == {"c"}
    with pytest.raises(UnknownTaskError):
        await there.read("t")
    assert await there.task("t") is None
    assert await there.state("t") is None
    with pytest.raises(UnknownTaskError):
        await numbers(there.follow("t"))


async def test_servers_do_not_see_the_tasks_of_others(log: PostgresEventLog, database: str) -> None:
    async with PostgresEventLog(LogAddress(database), f"other-{uuid4().hex}").opened() as other:
        await (await Writer(log).begin()).write(QUESTION)
        assert (await other.tasks(TaskQuery())).total == 0
        assert await other.waiting("c") is None
        assert await other.find_message("c", "q1") is None
        assert await other.unfinished() == []
        with pytest.raises(UnknownTaskError):
            await other.append("t", [])
        await (await Writer(other).begin()).write(ANSWER)
        assert await other.prune(0, 0) == {"c"}
        assert await log.waiting("c") == "t"


async def test_tasks_at_once_share_their_commits(log: PostgresEventLog, database: str) -> None:
    writers = [await Writer(log, f"t{number}").begin() for number in range(32)]
    await asyncio.gather(*(writer.write(*deltas(3)) for writer in writers for _ in range(5)))
    transactions = query(
        database,
        "SELECT count(DISTINCT event.xmin::text) FROM event_log.event JOIN event_log.task ON number = task"
        " WHERE server = %s AND seq > 1",
        log._server,
    )
    assert transactions[0][0] < 10


async def test_a_failed_write_harms_no_other(
    log: PostgresEventLog, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    writer, other = await Writer(log).begin(), await Writer(log, "other").begin()
    large = TextDelta("supervisor", "m1", "x" * 10_000)
    query(
        database,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$;"
        "CREATE TRIGGER refuse BEFORE INSERT ON event_log.event FOR EACH ROW WHEN (length(NEW.body) > 5000)"
        " EXECUTE FUNCTION refuse()",
    )
    try:
        with caplog.at_level(logging.CRITICAL):
            results = await asyncio.gather(
                writer.write(large),
                other.write(*deltas(2)),
                log.create(submitted("third")),
                log.claim("other", 0),
                return_exceptions=True,
            )
    finally:
        query(database, "DROP FUNCTION refuse CASCADE")
    assert [type(result) for result in results] == [LogWriteError, list, type(None), Claim]
    assert "When the database of the server can be used again" in str(results[0])
    assert log.problem is None
    await writer.write(ANSWER)
    assert await numbers(log.follow("t")) == [1, 2, 3]
    assert len(await log.read("other")) == 3


async def test_an_unconfirmed_commit_is_not_repeated(log: PostgresEventLog) -> None:
    """The connection breaks after the commit of each batch, before the writer learns of it."""
    writer = log._parts.writer
    execute = writer._execute
    lost = 0

    async def lose_the_answer(connection: Any, batch: Any) -> Any:
        nonlocal lost
        settled = await execute(connection, batch)
        if not any(pending.is_repeated for pending in batch):
            lost += 1
            await connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return settled

    writer._execute = lose_the_answer  # type: ignore[method-assign]
    run = await Writer(log).begin()
    await run.write(*deltas(3))
    await run.write(QUESTION)
    await log.add_message("t", message("q2"))
    assert await log.begin_effect("t", "call") is None
    assert await log.begin_effect("t", "call") == RecordedEffect(None)
    await log.finish_effect("t", "call", "done")
    await run.write(ANSWER)
    assert lost > 8
    assert await numbers(log.follow("t")) == [*range(1, 9)]
    assert await log.begin_effect("t", "call") == RecordedEffect("done")
    with pytest.raises(ValueError, match="already has task 't'"):
        await log.create(submitted())
    task = await log.task("t")
    assert task is not None
    assert [said.message_id for said in task.history if said.role == Role.ROLE_USER] == ["q1", "q2"]


async def test_a_follower_survives_the_loss_of_every_connection(
    logs: tuple[PostgresEventLog, PostgresEventLog], database: str
) -> None:
    here, there = logs
    writer = await Writer(here).begin()
    async with followed(there) as following:
        for _ in range(5):
            await writer.write(*deltas(2))
            disconnect_all(database)
            await writer.write(*deltas(2))
        await writer.write(ANSWER)
    assert following.result() == [*range(1, 24)]
    assert len(await there.read("t")) == 23


async def test_notifications_that_are_lost_are_made_up_for(
    logs: tuple[PostgresEventLog, PostgresEventLog], database: str
) -> None:
    """Another process has committed and its notification never arrived."""
    here, there = logs
    writer = await Writer(here).begin()
    here._channel = here._parts.writer._channel = "nowhere"
    async with followed(there) as following:
        await writer.write(*deltas(2))
        await writer.write(ANSWER)
    assert following.result() == [1, 2, 3, 4, 5]


@pytest.mark.long
@pytest.mark.parametrize("how", ["INT", "KILL"])
async def test_a_restart_of_the_server_in_mid_run_loses_and_repeats_nothing(
    logs: tuple[PostgresEventLog, PostgresEventLog], postgres: PostgresServer, how: Any
) -> None:
    here, there = logs
    writer = await Writer(here).begin()
    written: list[int] = []
    is_restarted = asyncio.Event()

    async def run() -> None:
        while not is_restarted.is_set() or len(written) < 20:
            written.extend(entry.seq for entry in await writer.write(*deltas(2)))
        await writer.write(ANSWER)

    async with followed(there) as following:
        running = asyncio.create_task(run())
        await asyncio.to_thread(postgres.stop, how)
        await asyncio.to_thread(postgres.start)
        is_restarted.set()
        await asyncio.wait_for(running, SECONDS)
    assert written == [*range(2, len(written) + 2)]
    assert following.result() == [*range(1, len(written) + 4)]
    assert await there.state("t") == TaskState.TASK_STATE_COMPLETED
    assert (here.problem, there.problem) == (None, None)


@pytest.mark.long
async def test_without_the_server_writes_fail_with_a_sentence_and_ends_are_stored_later(
    log: PostgresEventLog, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_writer, "RETRY_SECONDS", 0.3)
    monkeypatch.setattr(postgres_log, "_READ_SECONDS", 0.3)
    writer = await Writer(log).begin()
    async with followed(log) as following:
        await asyncio.to_thread(postgres.stop)
        try:
            with pytest.raises(LogWriteError, match="When the database of the server can be used again, check what"):
                await asyncio.wait_for(writer.write(*deltas(2)), SECONDS)
            for request in (log.create(submitted("new")), log.add_message("t", message("q2"))):
                with pytest.raises(RequestNotStoredError, match="Send the request again"):
                    await asyncio.wait_for(request, SECONDS)
            for read in (log.task("t"), log.waiting("c"), log.tasks(TaskQuery()), log.read("t")):
                with pytest.raises(LogReadError, match="database does not answer"):
                    await asyncio.wait_for(read, SECONDS)
            assert (log.problem or "").startswith("Tasks cannot be stored, because Postgres cannot be used: ")
            assert PASSWORD not in f"{log.problem}{caplog.text}"
            ending = asyncio.create_task(writer.write(Failed("unavailable", "The database is away.")))
            done, _ = await asyncio.wait({ending}, timeout=0.5)
            assert not done
        finally:
            await asyncio.to_thread(postgres.start)
        assert [entry.seq for entry in await asyncio.wait_for(ending, SECONDS)] == [2]
    assert following.result() == [1, 2]
    assert log.problem is None
    await (await Writer(log, "new").begin()).write(ANSWER)


WRITER = """
import asyncio, sys
from ai_platform_engineering.storage.event_log.postgres.log import PostgresEventLog
from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress
from tests.storage.event_log.test_log_contract import Writer, deltas

async def main():
    async with PostgresEventLog(LogAddress(sys.argv[1]), sys.argv[2]).opened() as log:
        writers = [Writer(log, f"t{number}") for number in range(3)]

        async def write(writer):
            while True:
                entries = await writer.write(*deltas(3))
                print(writer.state.task_id, entries[-1].seq, flush=True)

        await asyncio.gather(*map(write, writers))

asyncio.run(main())
"""


@pytest.mark.long
async def test_a_killed_process_loses_nothing_that_it_was_confirmed(
    log: PostgresEventLog, database: str, server: str
) -> None:
    writers = [await Writer(log, f"t{number}").begin() for number in range(3)]
    for lines in (20, 33):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", WRITER, database, server),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        output = [await asyncio.wait_for(process.stdout.readline(), SECONDS) for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        output += (await process.stdout.read()).splitlines()
        await process.wait()
        confirmed = {task_id: int(seq) for task_id, seq in (line.decode().split() for line in output if b" " in line)}
        for task_id, seq in confirmed.items():
            stored = [entry.seq for entry in await log.read(task_id)]
            assert stored == [*range(1, len(stored) + 1)]
            assert len(stored) >= seq
            assert len(stored) % 3 == 1, "a part of an append was stored"
    for writer in writers:
        await writer.write(ANSWER)
        assert await log.state(writer.state.task_id) == TaskState.TASK_STATE_COMPLETED


async def test_text_that_postgres_cannot_store(log: PostgresEventLog) -> None:
    task = submitted("t", "a\0b")
    task.history[0].message_id = "m\0"
    await log.create(task)
    assert await log.find_message("a\0b", "m\0") == FoundMessage("t", 0)
    assert await log.task("t") == task
    assert await log.begin_effect("t", "call") is None
    await log.finish_effect("t", "call", "a\0b \udc80")
    assert await log.begin_effect("t", "call") == RecordedEffect("a\ufffdb ?")


async def test_ended_tasks_are_listed_without_their_events(log: PostgresEventLog, database: str) -> None:
    await (await Writer(log).begin()).write(*deltas(3), ANSWER)
    async with asyncio.timeout(SECONDS):
        while not query(  # noqa: ASYNC110
            database, "SELECT 1 FROM event_log.task WHERE server = %s AND folded IS NOT NULL", log._server
        ):
            await asyncio.sleep(0.01)
    whole = await log.task("t")
    log._replicas.drop("t")
    query(database, "DELETE FROM event_log.event USING event_log.task WHERE number = task AND server = %s", log._server)
    assert (await log.tasks(TaskQuery())).tasks == [whole]
    assert await log.task("t") == whole


async def test_before_it_is_opened_and_after_it_was_closed(database: str, server: str) -> None:
    log = PostgresEventLog(LogAddress(database), server)
    for _ in range(2):
        with pytest.raises(LogClosedError):
            await log.append("t", [])
        with pytest.raises(LogClosedError):
            await log.state("t")
        async with log.opened():
            assert log.problem is None


async def test_the_tables_of_earlier_formats_are_migrated(postgres: PostgresServer) -> None:
    with new_database(postgres.address()) as address:
        async with PostgresEventLog(LogAddress(address)).opened() as log:
            await Writer(log).begin()
        query(address, "DROP TABLE event_log.conversation, event_log.access, event_log.sent")
        query(address, "UPDATE event_log.format SET number = 1")
        async with PostgresEventLog(LogAddress(address)).opened() as log:
            assert await log.rename("c", "Versions")
            assert await log.name("c") == "Versions"
            assert await log.find_message("c", "q1") == FoundMessage("t", 0)
            await log.create(submitted("u", message_id="q2"))
            with pytest.raises(RepeatedMessageError):
                await log.add_message("t", message("q2"))
        assert query(address, "SELECT number FROM event_log.format") == [(4,)]


async def test_a_database_that_cannot_be_used_is_named_with_the_way_out(postgres: PostgresServer) -> None:
    with new_database(postgres.address()) as address:
        async with PostgresEventLog(LogAddress(address)).opened():
            pass
        query(address, "UPDATE event_log.format SET number = 99")
        with pytest.raises(LogDatabaseError, match=r"newer version of this product \(format 99"):
            async with PostgresEventLog(LogAddress(address)).opened():
                pass
    with pytest.raises(LogDatabaseError, match="EVENT_LOG_POSTGRES_DSN") as refused:
        async with PostgresEventLog(LogAddress(address)).opened():
            pass
    assert PASSWORD not in str(refused.value)
