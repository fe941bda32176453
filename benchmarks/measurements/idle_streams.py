"""What an open stream takes in memory while nothing happens on it."""

from __future__ import annotations

import asyncio
import resource
from contextlib import AsyncExitStack

from benchmarks.effort import Effort
from benchmarks.rows import Row
from benchmarks.scenario import QUESTION
from benchmarks.subjects import Served, product
from benchmarks.traffic import Connection

# The model of these subjects thinks for an hour before its first word.
_SLOW = ["--delay=3600"]
_WARM_UP = 20


def idle_streams(effort: Effort) -> list[Row]:
    _allow_connections(effort.idle_streams + 200)
    with product(options=_SLOW) as supervisor:
        of_tasks = asyncio.run(_kilobytes(supervisor, effort.idle_streams, watch_one=False))
    with product(options=_SLOW) as supervisor:
        of_watchers = asyncio.run(_kilobytes(supervisor, effort.idle_streams, watch_one=True))
    return [
        Row("idle.tasks", f"Open idle stream: {effort.idle_streams}, each of a request of its own", of_tasks, "KB"),
        Row("idle.watchers", f"Open idle stream: {effort.idle_streams} of one request", of_watchers, "KB"),
    ]


async def _kilobytes(supervisor: Served, streams: int, *, watch_one: bool) -> float:
    async with AsyncExitStack() as stack:

        async def opened() -> Connection:
            return await stack.enter_async_context(Connection(supervisor.process.url))

        first = await opened()
        await first.begin(QUESTION)
        task_id = (await first.next_event())["id"]

        async def open_one() -> None:
            connection = await opened()
            if watch_one:
                await connection.watch(task_id)
            else:
                await connection.begin(QUESTION)
            await connection.next_event()

        for _ in range(_WARM_UP):
            await open_one()
        before = supervisor.resident_mb()
        for _ in range(streams):
            await open_one()
        # Behind the first event the run goes on until it waits for its model.
        await asyncio.sleep(0.5)
        return (supervisor.resident_mb() - before) / streams * 1000


def _allow_connections(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
