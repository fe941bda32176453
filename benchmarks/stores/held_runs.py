"""Runs that wait in the middle: their agents ask a model that does not answer until it is released."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.processes import Process
from benchmarks.scenario import CALLS_UNTIL_AGENT, QUESTION
from benchmarks.traffic import Connection, Frame

_QUIET_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class HeldRun:
    """`last` is the number of its last event so far."""

    task_id: str
    last: int


async def hold_runs(connections: Sequence[Connection], model: Process) -> list[HeldRun]:
    """Ask on each connection, and wait until all runs are held."""
    await asyncio.to_thread(model.order, {"reset": True, "hold": True})
    for connection in connections:
        await connection.begin(QUESTION)
    task_ids = [(await connection.next_event())["id"] for connection in connections]
    await asyncio.to_thread(model.order, {"until": len(connections) * CALLS_UNTIL_AGENT})
    last = await asyncio.gather(*map(read_until_quiet, connections))
    return [HeldRun(task_id, number) for task_id, number in zip(task_ids, last, strict=True)]


async def release_runs(model: Process) -> None:
    await asyncio.to_thread(model.order, {"release": True})


async def read_until_quiet(connection: Connection) -> int:
    """Read the events that there are, and return the number of the last one."""
    number = 0
    while True:
        try:
            async with asyncio.timeout(_QUIET_SECONDS):
                frame = await connection.next_frame()
        except TimeoutError:
            return number
        if frame is None:
            raise RuntimeError("a run ended that was to be held")
        number = frame.number


async def rest(connection: Connection) -> AsyncIterator[Frame]:
    """The events to the end of the stream."""
    while (frame := await connection.next_frame()) is not None:
        yield frame
