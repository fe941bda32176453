"""Slack calls the bot: each request is acknowledged within three seconds, or it has failed. Events are sent again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tests.integrations.slack_bot.standin.events import envelope
from tests.integrations.slack_bot.standin.state import State

ACK_SECONDS = 3.0
BUSY_ACK_SECONDS = 15.0
"""The same by a real clock. On a busy machine a bot in a process of its own may take more than three seconds."""
RETRIES = (0.0, 60.0, 300.0)
REAL_ACK_SECONDS = 15.0
"""Seconds of real time for which a virtual clock waits for an acknowledgement."""

Json = dict[str, Any]
RequestKind = Literal["events_api", "interactive", "slash_commands"]
Problem = Literal["", "http_timeout", "http_error", "connection_failed"]


@dataclass(frozen=True, slots=True)
class BotRequest:
    kind: RequestKind
    payload: Json
    retry_num: int = 0
    retry_reason: str = ""

    @property
    def what(self) -> str:
        match self.kind:
            case "events_api":
                return str(self.payload["event"]["type"])
            case "interactive":
                return str(self.payload["type"])
            case "slash_commands":
                return str(self.payload["command"])


@dataclass(frozen=True, slots=True)
class Reply:
    """The bot's response. `no_retry`: Slack must not send the event again."""

    payload: Mapping[str, Any] | None = None
    status: int = 200
    no_retry: bool = False


@dataclass(frozen=True, slots=True)
class Ack:
    """How a request ended."""

    request: BotRequest
    payload: Mapping[str, Any] | None = None
    problem: Problem = ""
    no_retry: bool = False


class Route(Protocol):
    """The way to the bot."""

    async def send(self, request: BotRequest) -> Reply:
        """Raises `ConnectionError` if the bot cannot be reached."""


@dataclass(slots=True)
class Deliveries:
    state: State
    route: Route
    ack_seconds: float = ACK_SECONDS
    copies: int = 1
    """How often each event is sent, as if the acknowledgement had been lost."""
    retries: tuple[float, ...] = RETRIES
    acks: list[Ack] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _waiting: dict[int, float] = field(default_factory=dict)

    def event(self, event: Json) -> Json:
        """Send the bot an event; returns the whole payload."""
        payload = envelope(self.state, event)
        for copy in range(self.copies):
            reason = "http_timeout" if copy else ""
            self.again(payload, BotRequest("events_api", payload, copy, reason))
        return payload

    def again(self, payload: Json, request: BotRequest | None = None) -> None:
        """Tell the bot of the same event once more."""
        first = request or BotRequest("events_api", payload, 1, "http_timeout")
        task = asyncio.create_task(self._tell(first))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def deliver(self, request: BotRequest) -> Ack:
        number = id(request)
        self._waiting[number] = time.monotonic()
        try:
            sending = asyncio.create_task(self.route.send(request))
            timeout = asyncio.create_task(self._ack_timeout())
            await asyncio.wait({sending, timeout}, return_when=asyncio.FIRST_COMPLETED)
            timeout.cancel()
            ack = await self._judged(request, sending)
        finally:
            del self._waiting[number]
        self.acks.append(ack)
        self.state.changed()
        return ack

    async def finish(self, within: float = 60.0) -> None:
        """Wait until all events that are on their way have been acknowledged or given up."""
        try:
            async with asyncio.timeout(within):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            failed = [f"{ack.request.what}: {ack.problem}" for ack in self.acks if ack.problem]
            raise AssertionError(f"not all events were acknowledged in {within:g} s; {failed}") from None

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_waiting(self) -> bool:
        """Whether an acknowledgement may be expected any moment."""
        return any(time.monotonic() - began < REAL_ACK_SECONDS for began in self._waiting.values())

    async def _ack_timeout(self) -> None:
        await self.state.clock.sleep(self.ack_seconds)

    async def _judged(self, request: BotRequest, sending: asyncio.Task[Reply]) -> Ack:
        if not sending.done():
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            self.state.violate("late_ack", request.what, f"nothing in {self.ack_seconds:g} s")
            return Ack(request, problem="http_timeout")
        try:
            reply = sending.result()
        except ConnectionError:
            return Ack(request, problem="connection_failed")
        if not 200 <= reply.status < 300:
            self.state.violate("no_ack", request.what, f"status {reply.status}")
            return Ack(request, problem="http_error", no_retry=reply.no_retry)
        return Ack(request, reply.payload)

    async def _tell(self, request: BotRequest) -> None:
        ack = await self.deliver(request)
        for attempt, delay in enumerate(self.retries, request.retry_num + 1):
            if not ack.problem or ack.no_retry:
                return
            await self.state.clock.sleep(delay)
            ack = await self.deliver(BotRequest(request.kind, request.payload, attempt, ack.problem))
