"""Two supervisors that share a Postgres database: each serves any request and continues the work of the other."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from ai_platform_engineering.audit.record import Entry
from ai_platform_engineering.audit.verification import verify
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.storage.audit.stores import audit_record, seal_of
from tests.people.test_stopped import Silence, ending_of, environ_of, silence
from tests.servers import CommandLine
from tests.test_durability import Frame, asked, frames

pytest_plugins = ("tests.services.fixtures",)
pytestmark = [pytest.mark.process, pytest.mark.long]

SECONDS = 90


def shared(folder: Path, database: str, **more: str) -> dict[str, str]:
    return environ_of(folder, EVENT_LOG="postgres", LANGGRAPH_CHECKPOINT_POSTGRES_DSN=database, **more)


@dataclass
class Pair:
    """`runner` has the run of the question, which waits for the tool `slow`; `other` does not."""

    database: str
    slow: Silence
    http: httpx.AsyncClient
    runner: CommandLine
    other: CommandLine
    responses: asyncio.Queue[httpx.Response]
    """Those that have begun."""
    task_id: str = ""
    streams: dict[str, asyncio.Task[list[Frame]]] = field(default_factory=dict)

    async def ask(self) -> None:
        """Ask a question that one of the two works on, and follow it at both."""
        supervisors = [self.runner, self.other]
        asking = frames(self.http, supervisors[0].url, "message/stream", asked(f"netutils: http check {self.slow.url}"))
        stream = asyncio.create_task(asking)
        await self.slow.until(1)
        [(self.task_id, worker)] = await rows(
            self.database, "SELECT args->>'task_id', worker_id FROM job_queue.procrastinate_jobs WHERE status = 'doing'"
        )
        # Workers are numbered in the order of their start.
        [(first,)] = await rows(self.database, "SELECT min(id) FROM job_queue.procrastinate_workers")
        place = 0 if worker == first else 1
        self.runner, self.other = supervisors[place], supervisors[1 - place]
        following = frames(self.http, supervisors[1].url, "tasks/resubscribe", {"id": self.task_id}, Last_Event_ID="0")
        self.streams = {supervisors[0].url: stream, supervisors[1].url: asyncio.create_task(following)}
        async with asyncio.timeout(SECONDS):
            for _ in self.streams:
                await self.responses.get()

    async def end_at(self, supervisor: CommandLine) -> list[Frame]:
        """The whole stream at a supervisor."""
        return await asyncio.wait_for(self.streams[supervisor.url], SECONDS)


async def rows(database: str, query: Any) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        return await (await connection.execute(query)).fetchall()


@asynccontextmanager
async def pair(database: str, folder: Path, **settings: str) -> AsyncIterator[Pair]:
    responses: asyncio.Queue[httpx.Response] = asyncio.Queue()
    hooks = {"response": [responses.put]}
    async with silence() as slow, httpx.AsyncClient(timeout=SECONDS, event_hooks=hooks) as http:
        first = CommandLine(["--port", "0"], shared(folder, database, **settings))
        second = CommandLine(["--port", "0"], shared(folder, database, **settings))
        async with first, second:
            asking = Pair(database, slow, http, first, second, responses)
            await asking.ask()
            try:
                yield asking
            finally:
                for stream in asking.streams.values():
                    stream.cancel()
                await asyncio.gather(*asking.streams.values(), return_exceptions=True)


def check_whole(stream: list[Frame]) -> None:
    """A stream from the first event to the answer, without a gap or a repetition."""
    assert [number for number, _ in stream] == list(range(len(stream)))
    assert stream[-1][1]["status"]["state"] == "completed"


async def test_a_supervisor_that_stops_hands_its_run_over_and_its_streams_say_so(database: str, tmp_path: Path) -> None:
    async with pair(database, tmp_path) as two:
        assert await two.runner.stop(signal.SIGTERM) == 0
        await two.slow.until(2)
        two.slow.answers.set()

        check_whole(await two.end_at(two.other))
        state, _, sentence = ending_of((await two.end_at(two.runner))[-1][1])
        assert state == "working"
        assert "subscribe again" in sentence


async def test_streams_of_a_supervisor_that_stops_end_with_a_status_while_the_run_goes_on_elsewhere(
    database: str, tmp_path: Path
) -> None:
    async with pair(database, tmp_path) as two:
        assert await two.other.stop(signal.SIGTERM) == 0

        stream = await two.end_at(two.other)
        state, _, sentence = ending_of(stream[-1][1])
        assert state == "working"
        assert "subscribe again" in sentence
        assert stream[-1][0] == stream[-2][0]
        two.slow.answers.set()
        check_whole(await two.end_at(two.runner))
        assert two.slow.connections == 1


@pytest.mark.parametrize("at", ["runner", "other"])
async def test_a_run_is_canceled_at_any_supervisor(database: str, tmp_path: Path, at: str) -> None:
    async with pair(database, tmp_path) as two:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {"id": two.task_id}}
        canceled = (await two.http.post(getattr(two, at).url, json=body)).json()["result"]

        assert canceled["status"]["state"] == "canceled"
        for supervisor in (two.runner, two.other):
            assert (await two.end_at(supervisor))[-1][1]["status"]["state"] == "canceled"


async def test_a_killed_worker_process_is_replaced_and_its_run_continues(database: str, tmp_path: Path) -> None:
    async with (
        silence() as slow,
        httpx.AsyncClient(timeout=SECONDS) as http,
        CommandLine(["serve", "--port", "0", "--workers", "2"], shared(tmp_path, database)) as supervisor,
    ):
        assert supervisor.process is not None
        question = asked(f"netutils: http check {slow.url}")
        streams = [asyncio.create_task(frames(http, supervisor.url, "message/stream", question))]
        await slow.until(1)
        for worker in children(supervisor.process.pid):
            os.kill(worker, signal.SIGKILL)
        with pytest.raises(httpx.RemoteProtocolError):
            await streams[0]
        await slow.until(2)
        slow.answers.set()

        whole = await frames(http, supervisor.url, "message/stream", question)
        changes = [asked("Sync the Argo CD application guestbook") for _ in range(4)]
        await asyncio.gather(*(frames(http, supervisor.url, "message/stream", change) for change in changes))

        check_whole(whole)
        assert await supervisor.stop(signal.SIGTERM) == 0
    check_audit(load_settings(shared(tmp_path, database), None), calls=len(changes))


def check_audit(settings: Settings, calls: int) -> None:
    """All workers have written one record."""
    with closing(audit_record(settings)) as record, record.open_lines() as lines:
        entries = [*lines]
        assert verify(entries, record.head(), seal_of(settings)).problem is None
    kinds = [Entry.read(line).facts["kind"] for line in entries]
    assert kinds.count("tool_call_started") == kinds.count("tool_call_finished") == calls


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


async def test_a_supervisor_that_shares_its_tasks_alone_says_so(database: str, tmp_path: Path) -> None:
    environ = environ_of(tmp_path, EVENT_LOG="postgres", EVENT_LOG_POSTGRES_DSN=database)
    async with CommandLine(["serve", "--port", "0"], environ) as supervisor:
        assert "conversations are not: run only this supervisor" in "".join(supervisor.output)
