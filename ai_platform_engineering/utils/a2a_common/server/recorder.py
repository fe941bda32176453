"""The recorder: appends the events of a run to the log and coalesces text deltas.

The first delta of a message is written at once, later ones are joined for up to the given interval, and any event other
than text flushes the buffer. The interval grows with the number of active runs, because an event costs most when CPU is
scarce. In a delegated run all events are joined for the interval: every write wakes the supervisor, and no person
watches. Subscribers see stored events only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from ai_platform_engineering.events import Ending, Event, TextDelta
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.wire import StreamState, WireEvent, begin, encode

_MAX_INTERVAL: Final = 0.25
_RUNS_PER_INTERVAL: Final = 4


def joining_interval(interval: float, active_runs: int) -> float:
    """Seconds for which text is joined with `active_runs`; `interval` is the minimum."""
    return max(interval, min(_MAX_INTERVAL, interval * active_runs / _RUNS_PER_INTERVAL))


class Recorder:
    """One per run. `put` never blocks; a background task writes until the context manager exits."""

    def __init__(
        self,
        log: EventLog,
        state: StreamState,
        interval: Callable[[], float],
        *,
        to_people: bool = True,
        epoch: int | None = None,
    ) -> None:
        self._log = log
        self._epoch = epoch
        self._state = state
        self._interval = interval
        self._to_people = to_people
        self._opening: Sequence[WireEvent] = ()
        self._pending: list[Event] = []
        self._has_work = asyncio.Event()
        self._boundary = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._owner: asyncio.Task[object] | None = None
        self._closing = False
        self._stopped = False
        self._last_message: str | None = None

    async def begin(self) -> None:
        """Write the status `working`."""
        if self._to_people:
            await self._log.append(self._state.task_id, begin(self._state), self._epoch)
        else:
            self._opening = begin(self._state)
            self._has_work.set()

    def report(self, usage: Callable[[], Mapping[str, Any]]) -> None:
        """Send what the run has used with its end."""
        self._state.usage = usage

    def put(self, *events: Event) -> None:
        """Queue events for writing. Raises the log's error if earlier events could not be stored."""
        if self._writer is not None and self._writer.done():
            self._writer.result()
        for event in events:
            self._pending.append(event)
            if self._flushes(event):
                self._boundary.set()
        self._has_work.set()

    def _flushes(self, event: Event) -> bool:
        """Whether the buffer is written at once because of this event."""
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
        self._closing = True
        self._boundary.set()
        self._has_work.set()
        if self._stopped and self._owner is not None:
            self._owner.uncancel()
        if self._writer is not None:
            # The last events of a cancelled run must still be written.
            await asyncio.shield(self._writer)

    def _stop_owner(self, writer: asyncio.Task[None]) -> None:
        """Cancel the run when its events cannot be stored, rather than at its next event."""
        if self._owner is not None and not self._closing and not writer.cancelled() and writer.exception():
            self._stopped = self._owner.cancel()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        not_before = 0.0 if self._to_people else loop.time() + self._interval()
        while self._pending or self._opening or not self._closing:
            await self._has_work.wait()
            if (pause := not_before - loop.time()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._boundary.wait()
            if not self._closing:
                self._has_work.clear()
                self._boundary.clear()
            events = merged(self._pending)
            self._pending.clear()
            opening, self._opening = self._opening, ()
            if events:
                self._last_message = events[-1].message_id if isinstance(events[-1], TextDelta) else None
            if opening or events:
                updates = [update for event in events for update in encode(self._state, event)]
                await self._log.append(self._state.task_id, [*opening, *updates], self._epoch)
                not_before = loop.time() + self._interval()


def merged(events: Iterable[Event]) -> list[Event]:
    """The events, with adjacent deltas of one message joined."""
    runs: list[list[Event]] = []
    for event in events:
        if runs and _continues(runs[-1][-1], event):
            runs[-1].append(event)
        else:
            runs.append([event])
    return [_joined(run) for run in runs]


def _continues(last: Event, event: Event) -> bool:
    """Whether `event` is the next delta of the same message."""
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
