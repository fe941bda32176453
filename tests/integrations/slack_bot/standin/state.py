"""Everything that the stand-in knows, and the few ways in which it changes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from ai_platform_engineering.integrations.slack_bot.clock import Clock
from ai_platform_engineering.integrations.slack_bot.preview.calls import Key
from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from ai_platform_engineering.integrations.slack_bot.preview.workspace import SlackWorkspace
from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.directory import Directory
from tests.integrations.slack_bot.standin.history import History
from tests.integrations.slack_bot.standin.limits import RateLimits
from tests.integrations.slack_bot.standin.violations import Kind, Violation

TRIGGER_SECONDS = 3.0
RESPONSE_URL_SECONDS = 1800.0
RESPONSE_URL_USES = 5


@dataclass(slots=True)
class Trigger:
    person: str
    expires: float
    used: bool = False


@dataclass(slots=True)
class ResponseUrl:
    channel: str
    person: str
    expires: float
    message: Key | None = None
    """What was pressed, if something was."""
    thread_ts: str = ""
    uses: int = 0


@dataclass(slots=True)
class Upload:
    file_id: str
    length: int
    arrived: bool = False
    shared: bool = False


@dataclass(slots=True)
class State:
    clock: Clock
    directory: Directory
    workspace: SlackWorkspace
    history: History
    url: str = ""
    violations: list[Violation] = field(default_factory=list)
    calls: list[ApiCall] = field(default_factory=list)
    rates: RateLimits = field(default_factory=RateLimits)
    stream_modes: dict[Key, Literal["chunks", "markdown_text"]] = field(default_factory=dict)
    stopped: set[Key] = field(default_factory=set)
    """Streams that were stopped by the bot."""
    stopped_by_people: set[Key] = field(default_factory=set)
    metadata: dict[Key, Mapping[str, Any]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    triggers: dict[str, Trigger] = field(default_factory=dict)
    response_urls: dict[str, ResponseUrl] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    socket_tickets: dict[str, float] = field(default_factory=dict)
    tell: Callable[[dict[str, Any]], None] = lambda event: None
    """Called with every event that the app might have subscribed to."""
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _last_ts: float = 0.0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def now(self) -> float:
        return self.clock.now()

    def done(self, method: str, arguments: Mapping[str, Any], *, made: str = "", author: str = "") -> None:
        """A call is done, and people see what came of it."""
        self.let_time_pass()
        self.workspace.apply(method, arguments, now=self.now, new_id=made, author=author)
        channel = arguments.get("channel") or arguments.get("channel_id") or ""
        ts = made or arguments.get("ts") or arguments.get("timestamp") or ""
        self.seen(channel, ts, arguments.get("thread_ts") or "")

    def seen(self, channel: str, ts: str, thread_ts: str = "") -> None:
        """Something has changed in a thread."""
        message = self.workspace.messages.get((channel, ts))
        thread_ts = (message.thread_ts if message else "") or thread_ts
        keys = [(channel, thread_ts)] if thread_ts else [(channel, ts), (channel, "")]
        for key in keys:
            self.history.record(self.workspace, key, self.now)
        self.changed()

    def let_time_pass(self) -> None:
        """Streams and statuses end by themselves."""
        streaming = self.workspace.streaming()
        threads = {(message.channel, message.thread_ts or message.ts) for message in streaming}
        threads.update(self.workspace.statuses)
        self.workspace.expire(self.now)
        for key in threads:
            self.history.record(self.workspace, key, self.now)

    def changed(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def change(self, seconds: float) -> None:
        """Wait for something to change, but not longer than that."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    def violate(self, kind: Kind, what: str, detail: str = "") -> None:
        self.violations.append(Violation(self.now, kind, what, detail))

    def message(self, channel: str, ts: str) -> SlackMessage | None:
        """A message that everybody sees."""
        self.let_time_pass()
        message = self.workspace.message(channel, ts)
        return None if message is None or message.ephemeral_for else message

    def thread_exists(self, channel: str, thread_ts: str) -> bool:
        """The first message of a thread may be gone as long as there are answers."""
        return bool(self.workspace.transcript(channel, thread_ts).messages)

    def new_ts(self) -> str:
        self._last_ts = max(self.now, self._last_ts + 0.000_01)
        return f"{self._last_ts:.6f}"

    def new_id(self, prefix: str = "") -> str:
        return f"{prefix}{next(self._numbers):04}{secrets.token_hex(3).upper()}"

    def new_trigger(self, person: str) -> str:
        name = f"{next(self._numbers)}.{self.directory.team_id}.{secrets.token_hex(8)}"
        self.triggers[name] = Trigger(person, self.now + TRIGGER_SECONDS)
        return name

    def new_response_url(self, channel: str, person: str, message: SlackMessage | None = None) -> str:
        name = secrets.token_hex(8)
        key = (message.channel, message.ts) if message else None
        thread_ts = message.thread_ts if message else ""
        self.response_urls[name] = ResponseUrl(channel, person, self.now + RESPONSE_URL_SECONDS, key, thread_ts)
        return f"{self.url}/response/{name}"
