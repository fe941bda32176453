"""The time from the kill of a process to the next event of the task that it was running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.databases import postgres
from benchmarks.effort import Effort
from benchmarks.processes import Process, started
from benchmarks.rows import Row
from benchmarks.stores.held_runs import hold_runs, read_until_quiet, release_runs, rest
from benchmarks.stores.storages import DEFAULT, SHARED, storage_settings
from benchmarks.subjects import command
from benchmarks.traffic import Connection

Start = Callable[[], Process]


def takeover(effort: Effort) -> list[Row]:
    with started("benchmarks.provider.server") as model:
        return [*_by_replica(effort, model), *_by_restart(effort, model)]


def _by_replica(effort: Effort, model: Process) -> list[Row]:
    with ExitStack() as stack:
        if (server := stack.enter_context(postgres())) is None:
            return []
        settings = stack.enter_context(storage_settings(SHARED, {"postgres": server}))

        def start() -> Process:
            return stack.enter_context(command(model.url, settings))

        runner, seconds = start(), []
        for _ in range(effort.kills):
            # The replica that took over runs the next task.
            runner, taken = asyncio.run(_taken_over(runner, start, model))
            seconds.append(taken)
    where = "two replicas (Postgres)"
    return [
        Row("takeover.replica", f"From the kill to the next event: {where}", median(seconds), "s"),
        Row("takeover.replica.slowest", f"… the slowest of {len(seconds)}", max(seconds), "s"),
    ]


async def _taken_over(runner: Process, start: Start, model: Process) -> tuple[Process, float]:
    """The other replica, and the seconds until its subscriber has the next event."""
    async with Connection(runner.url) as asking:
        [run] = await hold_runs([asking], model)
        # Not before: it would be free to run the task itself.
        other = start()
        async with Connection(other.url) as subscriber:
            await subscriber.watch(run.task_id, after=0)
            await read_until_quiet(subscriber)
            killed = time.perf_counter()
            runner.kill()
            await release_runs(model)
            arrived = [frame.seconds async for frame in rest(subscriber)]
    return other, arrived[0] - killed


def _by_restart(effort: Effort, model: Process) -> list[Row]:
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        settings = stack.enter_context(storage_settings(DEFAULT, {})) | {"DATA_DIR": folder}

        def start() -> Process:
            return stack.enter_context(command(model.url, settings))

        runner, seconds, starts = start(), [], []
        for _ in range(effort.kills):
            runner, taken = asyncio.run(_resumed(runner, start, model))
            seconds.append(taken)
            starts.append(runner.ready_after)
    where = "one process that is restarted at once (SQLite)"
    return [
        Row("takeover.restart", f"From the kill to the next event: {where}", median(seconds), "s"),
        Row("takeover.restart.slowest", f"… the slowest of {len(seconds)}", max(seconds), "s"),
        Row("takeover.restart.start", "… of which the start of the process, median", median(starts), "s"),
    ]


async def _resumed(runner: Process, start: Start, model: Process) -> tuple[Process, float]:
    """The restarted process, and the seconds until a subscriber that comes back to it has the next event."""
    async with Connection(runner.url) as asking:
        [run] = await hold_runs([asking], model)
        killed = time.perf_counter()
        runner.kill()
        await release_runs(model)
    restarted = start()
    async with Connection(restarted.url) as subscriber:
        await subscriber.watch(run.task_id, after=run.last)
        arrived = [frame.seconds async for frame in rest(subscriber) if frame.number > run.last]
    return restarted, arrived[0] - killed
