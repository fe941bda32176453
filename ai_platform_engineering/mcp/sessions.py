"""The owner of one server's session: opens it, keeps it, opens it again when it dies, closes it.

One task does all of that, because a session must be left by the task that entered it. Callers only wait on what the
owner publishes, and every call in flight is released when the session ends.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from mcp import McpError
from mcp.types import Tool

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp.backend_errors import reason_in
from ai_platform_engineering.mcp.connection import Call, Connection, Lifeline, TimeIsUp
from ai_platform_engineering.mcp.errors import (
    Lost,
    McpUnavailable,
    NotSent,
    NotStartable,
    Refused,
    ServerTrouble,
    ToolFailed,
)
from ai_platform_engineering.mcp.expansion import Endpoint, endpoint
from ai_platform_engineering.mcp.launchers import Launch, launches
from ai_platform_engineering.mcp.local_files import protected_paths, refusal
from ai_platform_engineering.mcp.results import Answer
from ai_platform_engineering.mcp.transports import connect
from ai_platform_engineering.mcp.workspace import Workspace, home_of, workspace
from ai_platform_engineering.settings import Settings

logger = logging.getLogger(__name__)

RESTART_WAIT: Final = 10.0
"""Seconds a call waits for a server that is being started again."""
START_TIMEOUT: Final = 60.0
"""Seconds an attempt to start may take when the manifest does not say. Longer than the supervisor waits at its own
start: a late server joins. A download has `MCP_DOWNLOAD_TIMEOUT`."""
PROGRESS_INTERVAL: Final = 15.0
"""Seconds between two lines in the log about a download."""
NEVER: Final = math.inf
_STARTING: Final = "is still starting"
_DOWNLOADING: Final = "is still downloading its tools"
_SHUT_DOWN: Final = "is shut down"


class SessionOwner:
    """Keeps one server's session open, from `start` to `aclose`. One in this process is made from `made_from`."""

    def __init__(
        self, agent: str, server: McpServer, settings: Settings, on_tools: Callable[[], None], made_from: object
    ) -> None:
        self.agent = agent
        self.server = server
        self.tools: tuple[Tool, ...] = ()
        """The server's tools as last listed, also while it is being restarted."""
        self.trouble: str | None = _STARTING
        """Why there is no session, as the end of a sentence about the server; None while there is one."""
        self.settled = asyncio.Event()
        """Set when the first attempt to start has come to an end, good or bad."""
        self._settings = settings
        self._on_tools = on_tools
        self._made_from = made_from
        self._connection: Connection | None = None
        self._lifeline = Lifeline()
        self._moved = asyncio.Event()
        self._next_attempt = 0.0
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._directories: Workspace | None = None
        self._protected = protected_paths(settings.data_dir)

    @property
    def problem(self) -> str | None:
        """Why the server cannot be used now, as a sentence."""
        return None if self.trouble is None else f"{self._name} {self.trouble}."

    @property
    def starting(self) -> bool:
        """Whether the first start goes on, or a download: the server may be usable soon, nothing has failed."""
        return self.trouble in {_STARTING, _DOWNLOADING}

    def start(self) -> None:
        self._task = asyncio.create_task(self._own(), name=f"mcp {self.agent}/{self.server.name}")

    async def aclose(self) -> None:
        """Ends the session and waits until nothing of it is left. May be called at any time, and more than once."""
        self._closing.set()
        self._lifeline.end(_SHUT_DOWN)
        self._publish(None, _SHUT_DOWN)
        if self._task is not None:
            await asyncio.wait([self._task])

    async def call(self, call: Call) -> str:
        """The tool's answer. Raises `ToolFailed` when the tool says no, `McpUnavailable` when there is no answer."""
        if refusal := self._refusal(call):
            raise ToolFailed(refusal, refusal)
        try:
            answer = await self._answer(call)
        except NotSent as trouble:
            raise McpUnavailable(f"{self._name} {trouble.reason}. {call.tool} was not run{self._outlook}.") from None
        except Refused as trouble:
            raise McpUnavailable(f"{self._name} {trouble.reason}. {call.tool} was not run.") from None
        except Lost as trouble:
            raise McpUnavailable(
                f"{self._name} {trouble.reason} while {call.tool} was running. "
                f"Whether it took effect is unknown; check before trying again."
            ) from None
        except McpError as error:
            raise ToolFailed(error.error.message, reason_in(error.error.message)) from None
        if answer.failed:
            raise ToolFailed(answer.text, answer.reason)
        return answer.text

    def _refusal(self, call: Call) -> str | None:
        """Why the call must not be sent. Only a process of ours reads files of this machine."""
        if self.server.transport != "stdio":
            return None
        schema = next((tool for tool in self.tools if tool.name == call.tool), Tool(name=call.tool, inputSchema={}))
        rules = self.server.local_files.get(call.tool, {})
        directory = self._directories.directory if self._directories else None
        return refusal(schema, call.arguments, rules, self._protected, directory)

    @property
    def _name(self) -> str:
        return f"The {self.server.name} server"

    @property
    def _outlook(self) -> str:
        if self._closing.is_set() or self._next_attempt == NEVER:
            return ""
        wait = self._next_attempt - time.monotonic()
        return f"; the next start is in {wait:.0f} seconds" if wait > 1 else "; it is being started again"

    async def _answer(self, call: Call) -> Answer:
        connection, lifeline = await self._ready()
        try:
            return await connection.call_tool(call, self._settings.tool_timeout)
        except NotSent as trouble:
            lifeline.end(trouble.reason, grace=1.0)
        connection, _ = await self._ready()
        return await connection.call_tool(call, self._settings.tool_timeout)

    async def _ready(self) -> tuple[Connection, Lifeline]:
        """The session, or the next one if that is about to be there."""
        deadline = time.monotonic() + RESTART_WAIT
        while self._connection is None or self._lifeline.ended is not None:
            if self._closing.is_set() or self._next_attempt > deadline:
                raise NotSent(self.trouble or _SHUT_DOWN)
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._moved.wait()
            except TimeoutError:
                raise NotSent(self.trouble or _STARTING) from None
        return self._connection, self._lifeline

    async def _own(self) -> None:
        failures = 0
        launch_number = 0
        while not self._closing.is_set():
            self._lifeline = Lifeline()
            up_since: float | None = None
            place: Endpoint | None = None
            other_launches = False
            try:
                async with AsyncExitStack() as stack:
                    place = endpoint(self.server, self._settings.environ, self._workspace(stack))
                    options = launches(place.command, place.args)
                    launch = options[launch_number]
                    other_launches = launch_number + 1 < len(options)
                    connection, tools = await self._open(stack, place, launch)
                    up_since = time.monotonic()
                    self._opened(connection, tools, failures)
                    await self._keep(connection)
            except Exception as error:
                reason = self._reason(error, place) if up_since is None else self._death()
                startable = not isinstance(_cause(error), NotStartable)
            else:
                reason, startable = self._death(), True
            if self._closing.is_set():
                break
            if other_launches and up_since is None and self._lifeline.ended is not None:
                launch_number += 1
                logger.debug("%s of %s %s; it is started in another way", self._name, self.agent, reason)
                continue
            launch_number = 0
            if up_since is not None and time.monotonic() - up_since >= self._settings.mcp_restart_backoff_max:
                failures = 0
            failures += 1
            delay = restart_delay(failures, up_since is not None, self._settings) if startable else NEVER
            self._next_attempt = time.monotonic() + delay
            self._publish(None, reason)
            self._log_trouble(reason, failures, delay)
            self.settled.set()
            if not startable:
                return
            await self._sleep(delay)
        self.settled.set()

    def _workspace(self, stack: AsyncExitStack) -> Workspace | None:
        """The directories of a server that is a process; they outlive the process, which is stopped first."""
        if self.server.transport != "stdio":
            return None
        user_home = home_of(self._settings.environ)
        self._directories = stack.enter_context(workspace(self.server.name, user_home, self.server.home))
        return self._directories

    async def _open(self, stack: AsyncExitStack, place: Endpoint, launch: Launch) -> tuple[Connection, list[Tool]]:
        limit = self.server.start_timeout or max(START_TIMEOUT, self._settings.mcp_start_timeout)
        if launch.downloads:
            limit = max(limit, self._settings.mcp_download_timeout)
        try:
            with self._download_reported() if launch.downloads else nullcontext():
                return await self._connect(stack, replace(place, args=launch.args), limit)
        except TimeIsUp:
            raise Lost(f"did not start within {limit:g} seconds{self._last_line}") from None

    async def _connect(self, stack: AsyncExitStack, place: Endpoint, limit: float) -> tuple[Connection, list[Tool]]:
        async with self._lifeline.limit(limit):
            connection = await stack.enter_async_context(
                connect(self.server.transport, place, self._made_from, self._lifeline)
            )
            return connection, await connection.list_tools()

    @contextmanager
    def _download_reported(self) -> Iterator[None]:
        """Says in the log, from time to time, that a download goes on and how far it is."""
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        timer: asyncio.TimerHandle

        def report() -> None:
            nonlocal timer
            self._publish(None, _DOWNLOADING)
            seconds = time.monotonic() - began
            logger.info("%s of %s %s (%.0f s)%s", self._name, self.agent, _DOWNLOADING, seconds, self._last_line)
            timer = loop.call_later(PROGRESS_INTERVAL, report)

        if not self.settled.is_set():
            # Later, a server that fails at every start would seem to download each time.
            self._publish(None, _DOWNLOADING)
            logger.info("%s of %s is started from its registry; a download may take a while", self._name, self.agent)
        timer = loop.call_later(PROGRESS_INTERVAL, report)
        try:
            yield
        finally:
            timer.cancel()

    async def _keep(self, connection: Connection) -> None:
        """Follows the session until it ends."""
        try:
            while self._lifeline.ended is None:
                if await self._lifeline.news():
                    await self._list_again(connection)
        finally:
            if self._lifeline.ended is None:
                self._lifeline.end("stopped")
            self._publish(None, self._death())
        await self._lifeline.deserted()

    async def _list_again(self, connection: Connection) -> None:
        try:
            async with self._lifeline.limit(self._settings.tool_timeout):
                self._adopt(await connection.list_tools())
        except Exception as error:
            if self._lifeline.ended is None:
                logger.warning(
                    "%s of %s did not list its changed tools: %s", self._name, self.agent, type(error).__name__
                )

    def _opened(self, connection: Connection, tools: list[Tool], failures: int) -> None:
        level = logging.INFO if failures else logging.DEBUG
        logger.log(level, "%s of %s is up with %d tools", self._name, self.agent, len(tools))
        self._next_attempt = 0.0
        self._adopt(tools)
        self._publish(connection, None)
        self.settled.set()

    def _adopt(self, tools: list[Tool]) -> None:
        if self.tools != tuple(tools):
            self.tools = tuple(tools)
            self._on_tools()

    def _publish(self, connection: Connection | None, trouble: str | None) -> None:
        self._connection = connection
        self.trouble = trouble
        self._moved.set()
        self._moved = asyncio.Event()

    async def _sleep(self, delay: float) -> None:
        try:
            async with asyncio.timeout(delay):
                await self._closing.wait()
        except TimeoutError:
            self._next_attempt = 0.0

    def _death(self) -> str:
        """Why the session ended, as the end of a sentence about the server."""
        return _SHUT_DOWN if self._closing.is_set() else f"{self._lifeline.ended or 'stopped'}{self._last_line}"

    @property
    def _last_line(self) -> str:
        """The rest of a sentence about a process: the last it wrote to standard error."""
        line = self._lifeline.stderr.last_line if self._lifeline.stderr else ""
        return f'; its last line on standard error was "{line}"' if line else ""

    def _reason(self, error: Exception, place: Endpoint | None) -> str:
        cause = _cause(error)
        if isinstance(cause, McpError) and isinstance(cause.error.data, ServerTrouble):
            cause = cause.error.data
        if isinstance(cause, ServerTrouble):
            return cause.reason
        if self._lifeline.ended is not None:
            return f"{self._lifeline.ended} while it was starting{self._last_line}"
        if place is not None and logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: %s", self._name, place.redact("".join(traceback.format_exception(error))))
        if isinstance(cause, McpError):
            return f"refused the session (error {cause.error.code})"
        return f"could not be started ({type(cause).__name__}); LOG_LEVEL=debug shows where"

    def _log_trouble(self, reason: str, failures: int, delay: float) -> None:
        again = "" if delay == NEVER else f"; next start in {delay:g} s"
        level = logging.WARNING if failures == 1 else logging.DEBUG
        logger.log(level, "%s of %s %s%s", self._name, self.agent, reason, again)


def restart_delay(failures: int, was_up: bool, settings: Settings) -> float:
    """Seconds before the next start after `failures` in a row: none after a single crash, then doubling."""
    doublings = failures - 1 - (1 if was_up else 0)
    if doublings < 0:
        return 0.0
    return float(min(settings.mcp_restart_backoff_max, settings.mcp_restart_backoff * 2 ** min(doublings, 32)))


def _cause(error: BaseException) -> BaseException:
    """The one exception in a task group's parcel."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
