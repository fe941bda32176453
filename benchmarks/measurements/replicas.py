"""Subscribers of a task at the replica that runs it and at another one: how soon they have an event."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from statistics import median
from typing import Final

import psycopg

from benchmarks.databases import postgres
from benchmarks.effort import Effort
from benchmarks.processes import Process, started
from benchmarks.rows import Row
from benchmarks.stores.commits import Commits
from benchmarks.stores.held_runs import HeldRun, hold_runs, read_until_quiet, release_runs, rest
from benchmarks.stores.storages import SHARED, storage_settings
from benchmarks.subjects import command
from benchmarks.traffic import Connection

LABELS: Final = {"own": "at the replica that runs the task", "other": "at another replica"}
_MAX_TASKS: Final = 4
_MISSED: Final = 3
"""The number of events that a new subscriber asks for."""

Seconds = Mapping[str, Sequence[float]]


def replicas(effort: Effort) -> list[Row]:
    with ExitStack() as stack:
        if (server := stack.enter_context(postgres())) is None:
            return []
        model = stack.enter_context(started("benchmarks.provider.server"))
        settings = stack.enter_context(storage_settings(SHARED, {"postgres": server}))

        def start() -> Process:
            return stack.enter_context(command(model.url, settings))

        address = settings["EVENT_LOG_POSTGRES_DSN"]
        live, subscribed = asyncio.run(_measured(start(), start, model, address, effort))
    return [
        *_rows("live", "From the commit of an event to a subscriber", live),
        *_rows("subscribe", f"From a new subscription to the first of the last {_MISSED} events", subscribed),
    ]


def _rows(name: str, label: str, seconds: Seconds) -> list[Row]:
    middle = {where: median(found) for where, found in seconds.items()}
    return [
        Row(f"replicas.{name}.{where}", f"{label}: {LABELS[where]}", value * 1000, "ms", value / middle["own"])
        for where, value in middle.items()
    ]


async def _measured(
    runner: Process, start: Callable[[], Process], model: Process, address: str, effort: Effort
) -> tuple[Seconds, Seconds]:
    async with AsyncExitStack() as stack:

        async def opened(url: str) -> Connection:
            return await stack.enter_async_context(Connection(url))

        asking = [await opened(runner.url) for _ in range(min(_MAX_TASKS, effort.subscriptions))]
        runs = await hold_runs(asking, model)
        # Not before: it would be free to run the tasks itself.
        urls = {"own": runner.url, "other": start().url}
        subscribed = await _subscriptions(urls, runs, effort.subscriptions)
        subscribers: dict[tuple[str, str], Connection] = {}
        for where, url in urls.items():
            for run in runs:
                subscriber = subscribers[where, run.task_id] = await opened(url)
                await subscriber.watch(run.task_id, after=0)
        await asyncio.gather(*map(read_until_quiet, subscribers.values()))
        connection = await psycopg.AsyncConnection.connect(address, autocommit=True)
        commits = await Commits.listening(await stack.enter_async_context(connection))
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(commits.collect())
            await release_runs(model)
            arrivals = await asyncio.gather(*map(_arrivals, subscribers.values()))
            listening.cancel()
        live: dict[str, list[float]] = defaultdict(list)
        for (where, task_id), numbers in zip(subscribers, arrivals, strict=True):
            live[where] += commits.latencies(task_id, numbers)
    return live, subscribed


async def _arrivals(subscriber: Connection) -> dict[int, float]:
    return {frame.number: frame.seconds async for frame in rest(subscriber)}


async def _subscriptions(urls: Mapping[str, str], runs: Sequence[HeldRun], count: int) -> Seconds:
    """The replicas take turns."""
    seconds = defaultdict(list)
    for number in range(count):
        run = runs[number % len(runs)]
        for where, url in urls.items():
            began = time.perf_counter()
            async with Connection(url) as subscriber:
                await subscriber.watch(run.task_id, after=run.last - _MISSED)
                while (frame := await subscriber.next_frame()) and frame.number <= run.last - _MISSED:
                    pass  # the task as it was
                assert frame is not None
                seconds[where].append(frame.seconds - began)
    return seconds
