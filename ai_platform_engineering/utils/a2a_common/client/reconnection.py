"""When and how often a lost connection to one of our agents is opened again."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import httpx
from a2a.utils.errors import A2AError, InternalError

from ai_platform_engineering.utils.a2a_common.protocol import SERVER_STOPPING
from ai_platform_engineering.utils.connections import causes

_FIRST_PAUSE: Final = 0.1
_MAX_PAUSE: Final = 2.0


class StreamCutError(Exception):
    """A stream ended before its run did: its server stops, or a proxy closed the connection."""


class Reconnection:
    """The pauses between attempts: doubled each time, for at most `seconds` after the connection was lost."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lost_at: float | None = None
        self._pause = 0.0
        self.last_seq: int | None = None
        """The number of the last event that was received, 0 before the first; None if there was no response."""

    @property
    def is_over(self) -> bool:
        """Whether the time has passed. False if nothing was lost."""
        return self._lost_at is not None and time.monotonic() >= self._lost_at + self._seconds

    def lost(self, since: float | None = None) -> bool:
        """Note a lost connection. True for the first one since the last new event.

        `since` is an earlier time at which another call lost its connection to the same agent.
        """
        is_first = self._lost_at is None
        if self._lost_at is None:
            self._lost_at = time.monotonic() if since is None else since
        return is_first

    def received(self, seq: int | None) -> None:
        """Note a response with this number, if it has one. A new event ends the loss of the connection."""
        if self.last_seq is None or (seq or 0) > self.last_seq:
            self.last_seq = seq or 0
            self._lost_at, self._pause = None, 0.0

    async def pause(self) -> None:
        if self._lost_at is None:
            return
        self._pause = min(_MAX_PAUSE, 2 * self._pause) or _FIRST_PAUSE
        left = self._lost_at + self._seconds - time.monotonic()
        await asyncio.sleep(max(0.0, min(self._pause, left)))


def is_temporary(error: Exception, *, started: bool) -> bool:
    """Whether another attempt may succeed: the connection or the server failed, not the request.

    `started`: the agent works on the request already, so an attempt only reads its events.
    """
    if isinstance(error, StreamCutError):
        return True
    if (status := http_status_of(error)) is not None:
        return status >= httpx.codes.INTERNAL_SERVER_ERROR
    if isinstance(error, A2AError):
        is_stopping = SERVER_STOPPING.items() <= (error.data or {}).items()
        return is_stopping or (started and isinstance(error, InternalError))
    return isinstance(error, httpx.HTTPError)


def was_never_sent(error: Exception) -> bool:
    """Whether the request cannot have reached the agent, or the agent has rejected it."""
    if any(isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout) for cause in causes(error)):
        return True
    status = http_status_of(error)
    return status < httpx.codes.INTERNAL_SERVER_ERROR if status is not None else isinstance(error, A2AError)


def http_status_of(error: Exception) -> int | None:
    """The HTTP status of the agent's response; None if the error is not about a status."""
    for cause in causes(error):
        if isinstance(cause, httpx.HTTPStatusError):
            return cause.response.status_code
        if isinstance(status := getattr(cause, "status_code", None), int):
            return status
    return None
