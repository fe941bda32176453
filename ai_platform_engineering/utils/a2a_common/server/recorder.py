"""The recorder: writes a run's events into the log, text in pieces of a readable size.

The first piece of a message goes out at once, later ones are joined for up to the given interval, and nothing is held
back when something other than text happens. The interval grows with the number of active runs, as each event costs most
when there is least CPU to spare. What a supervisor is told, and no person, is all joined for the interval: every write
wakes it. Only what the log has taken becomes visible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from ai_platform_engineering.events import Ending, Event, TextDelta
from ai_platform_engineering.storage.event_log.event_log import Entry, EventLog
from ai_platform_engineering.utils.a2a_common.wire import StreamState, WireEvent, begin, encode

Written = Callable[[Sequence[Entry]], Awaitable[None]]

_MAX_INTERVAL: Final = 0.25
_RUNS_PER_INTERVAL: Final = 4


def joining_interval(interval: float, active_runs: int) -> float:
    """Seconds for which text is joined while so many runs are active; `interval` is that of a few."""
    return max(interval, min(_MAX_INTERVAL, interval * active_runs / _RUNS_PER_INTERVAL))


class Recorder:
    """One per run. `put` never waits; a task of its own writes in the background until the recorder is left."""

    def __init__(
        self,
        log: EventLog,
        state: StreamState,
        interval: Callable[[], float],
        written: Written,
        *,
        to_people: bool = True,
    ) -> None:
        self._log = log
        self._state = state
        self._interval = interval
        self._written = written
        self._to_people = to_people
        self._opening: Sequence[WireEvent] = ()
        self._waiting: list[Event] = []
        self._something = asyncio.Event()
        self._boundary = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._owner: asyncio.Task[object] | None = None
        self._leaving = False
        self._stopped = False
        self._last_message: str | None = None

    @property
    def entered(self) -> bool:
        return self._writer is not None

    async def begin(self) -> None:
        """Say that the work has begun."""
        if self._to_people:
            await self._append(begin(self._state))
        else:
            self._opening = begin(self._state)
            self._something.set()

    def put(self, *events: Event) -> None:
        """Have the events written. Raises what the log raised, if it could not keep earlier ones."""
        if self._writer is not None and self._writer.done():
            self._writer.result()
        for event in events:
            self._waiting.append(event)
            if self._is_awaited(event):
                self._boundary.set()
        self._something.set()

    def _is_awaited(self, event: Event) -> bool:
        """Whether it goes out at once."""
        if not self._to_people:
            return isinstance(event, Ending)
        return not isinstance(event, TextDelta) or event.message_id != self._last_message

    async def __aenter__(self) -> Self:
        self._owner = asyncio.current_task()
        self._writer = asyncio.create_task(self._write(), name=f"recorder:{self._state.task_id}")
        self._writer.add_done_callback(self._stop_owner)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving = True
        self._boundary.set()
        self._something.set()
        if self._stopped and self._owner is not None:
            self._owner.uncancel()
        if self._writer is not None:
            # A cancelled run still has its last events to write.
            await asyncio.shield(self._writer)

    def _stop_owner(self, writer: asyncio.Task[None]) -> None:
        """A run whose events cannot be kept is not worth going on with, however long its next event takes."""
        if self._owner is not None and not self._leaving and not writer.cancelled() and writer.exception():
            self._stopped = self._owner.cancel()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        not_before = 0.0 if self._to_people else loop.time() + self._interval()
        while self._waiting or self._opening or not self._leaving:
            await self._something.wait()
            if (pause := not_before - loop.time()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._boundary.wait()
            if not self._leaving:
                self._something.clear()
                self._boundary.clear()
            events = merged(self._waiting)
            self._waiting.clear()
            opening, self._opening = self._opening, ()
            if events:
                self._last_message = events[-1].message_id if isinstance(events[-1], TextDelta) else None
            if opening or events:
                await self._append([*opening, *(update for event in events for update in encode(self._state, event))])
                not_before = loop.time() + self._interval()

    async def _append(self, updates: Sequence[WireEvent]) -> None:
        await self._written(await self._log.append(self._state.task_id, updates))


def merged(events: Iterable[Event]) -> list[Event]:
    """The events with neighbouring pieces of one message joined."""
    runs: list[list[Event]] = []
    for event in events:
        if runs and _goes_on(runs[-1][-1], event):
            runs[-1].append(event)
        else:
            runs.append([event])
    return [_joined(run) for run in runs]


def _goes_on(last: Event, event: Event) -> bool:
    """Whether it is the next piece of the same message."""
    return (
        isinstance(event, TextDelta)
        and isinstance(last, TextDelta)
        and last.message_id == event.message_id
        and last.parent_call_id == event.parent_call_id
        and event.supersedes is None
    )


def _joined(run: Sequence[Event]) -> Event:
    first = run[0]
    if len(run) == 1 or not isinstance(first, TextDelta):
        return first
    return replace(first, text="".join(event.text for event in run if isinstance(event, TextDelta)))
