"""The owner of one server's session: it opens the session, restarts it after a failure, and closes it.

One task does all of that, because the task that opens a session must also close it. Callers only read the state that
the owner publishes. When the session ends, all calls in flight end too.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from mcp import McpError
from mcp.types import Tool

from ai_platform_engineering.manifest import McpServer, Transport
from ai_platform_engineering.mcp.backend_errors import reason_in
from ai_platform_engineering.mcp.confinement import child_user, confined
from ai_platform_engineering.mcp.connection import (
    CallTimedOut,
    ConnectionState,
    McpCall,
    ServerConnection,
    open_session,
)
from ai_platform_engineering.mcp.errors import (
    CredentialsRefused,
    McpUnavailable,
    NotSent,
    NotStartable,
    RequestRefused,
    ResultLost,
    ServerFailure,
    ToolFailed,
)
from ai_platform_engineering.mcp.expansion import Endpoint, endpoint
from ai_platform_engineering.mcp.launchers import Launch, is_launcher, launches
from ai_platform_engineering.mcp.local_files import protected_paths, refusal
from ai_platform_engineering.mcp.on_behalf_of import NoUserTokenError, Requester, UserHeaders, user_headers
from ai_platform_engineering.mcp.packages import located
from ai_platform_engineering.mcp.results import ToolAnswer
from ai_platform_engineering.mcp.workspace import ServerWorkspace, home_of, workspace
from ai_platform_engineering.settings import Settings

logger = logging.getLogger(__name__)

RESTART_WAIT: Final = 10.0
"""Seconds that a call waits for a server that is being restarted."""
START_TIMEOUT: Final = 60.0
"""Default timeout in seconds of one start of a server. It is longer than the supervisor waits during its own start; a
late server joins afterwards. A download has `MCP_DOWNLOAD_TIMEOUT`."""
PROGRESS_INTERVAL: Final = 15.0
"""Seconds between two log lines about a download."""
NEVER: Final = math.inf
_STARTING: Final = "is still starting"
_DOWNLOADING: Final = "is still downloading its tools"
_SHUT_DOWN: Final = "is shut down"


class SessionOwner:
    """Keeps one server's session open from `start` to `aclose`.

    `factory_argument` is passed to the function that creates a server in this process.
    """

    def __init__(
        self, agent: str, server: McpServer, settings: Settings, on_tools: Callable[[], None], factory_argument: object
    ) -> None:
        self.agent = agent
        self.server = server
        self.tools: tuple[Tool, ...] = ()
        """The last list of the server's tools. It stays during a restart."""
        self.down_reason: str | None = _STARTING
        """Why there is no session, as the end of a sentence about the server; None while there is one."""
        self.start_attempted = asyncio.Event()
        """Set when the first attempt to start has succeeded or failed."""
        self._settings = settings
        self._on_tools = on_tools
        self._factory_argument = factory_argument
        self._connection: ServerConnection | None = None
        self._state = ConnectionState()
        self._published = asyncio.Event()
        self._next_attempt = 0.0
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._directories: ServerWorkspace | None = None
        self._protected = protected_paths(settings.data_dir)

    @cached_property
    def _users(self) -> UserHeaders | None:
        """The headers of calls on behalf of a user; None if the manifest asks for none."""
        return user_headers(self.server, self._settings)

    @property
    def problem(self) -> str | None:
        """Why the server cannot be used now, as a sentence; None if it can."""
        return None if self.down_reason is None else f"{self._name} {self.down_reason}."

    @property
    def starting(self) -> bool:
        """Whether the first start or a download is in progress, without a failure so far."""
        return self.down_reason in {_STARTING, _DOWNLOADING}

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"mcp {self.agent}/{self.server.name}")

    async def aclose(self) -> None:
        """End the session and wait until its resources are released. Idempotent, and allowed at any time."""
        self._closing.set()
        self._state.end(_SHUT_DOWN)
        self._publish(None, _SHUT_DOWN)
        if self._task is not None:
            await asyncio.wait([self._task])

    async def call(self, call: McpCall) -> str:
        """The tool's answer. Raises `ToolFailed` if the tool returned an error, `McpUnavailable` without an answer."""
        if refusal := self._refusal(call):
            raise ToolFailed(refusal, refusal)
        try:
            answer = await self._answer(call)
        except NotSent as failure:
            raise McpUnavailable(f"{self._name} {failure.reason}. {call.tool} was not run{self._outlook}.") from None
        except RequestRefused as failure:
            if isinstance(failure, CredentialsRefused) and self._users is not None:
                self._users.forget(call.headers)
            raise McpUnavailable(f"{self._name} {failure.reason}. {call.tool} was not run.") from None
        except ResultLost as failure:
            raise McpUnavailable(
                f"{self._name} {failure.reason} while {call.tool} was running. "
                f"Whether it took effect is unknown; check before trying again."
            ) from None
        except McpError as error:
            raise ToolFailed(error.error.message, reason_in(error.error.message)) from None
        if answer.failed:
            raise ToolFailed(answer.text, answer.reason)
        return answer.text

    async def user_headers(self, tool: str, requester: Callable[[], Requester]) -> Mapping[str, str]:
        """The headers of a call on behalf of the user. Raises `McpUnavailable` if it cannot be made so."""
        try:
            users = self._users
            return {} if users is None else await users.of(requester())
        except NotStartable:
            return {}  # the call is not sent either
        except NoUserTokenError as error:
            raise McpUnavailable(f"{self._name} cannot be used here. {tool} was not run: {error}.") from None

    def _refusal(self, call: McpCall) -> str | None:
        """Why the call must not be sent. Only a child process can read files of this machine."""
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

    async def _answer(self, call: McpCall) -> ToolAnswer:
        connection, state = await self._ready()
        try:
            return await connection.call_tool(call, self._settings.tool_timeout)
        except NotSent as failure:
            state.end(failure.reason, grace=1.0)
        connection, _ = await self._ready()
        return await connection.call_tool(call, self._settings.tool_timeout)

    async def _ready(self) -> tuple[ServerConnection, ConnectionState]:
        """The open session; waits for one that is being restarted."""
        deadline = time.monotonic() + RESTART_WAIT
        while self._connection is None or self._state.end_reason is not None:
            if self._closing.is_set() or self._next_attempt > deadline:
                raise NotSent(self.down_reason or _SHUT_DOWN)
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._published.wait()
            except TimeoutError:
                raise NotSent(self.down_reason or _STARTING) from None
        return self._connection, self._state

    async def _run(self) -> None:
        failures = 0
        launch_number = 0
        while not self._closing.is_set():
            self._state = ConnectionState()
            up_since: float | None = None
            target: Endpoint | None = None
            other_launches = False
            try:
                async with AsyncExitStack() as stack:
                    server = located(self.agent, self.server, self._settings)
                    target = self._target(server, stack)
                    options = launches(target.command, target.args, downloads=self._settings.mcp_allow_downloads)
                    launch = options[launch_number]
                    other_launches = launch_number + 1 < len(options)
                    connection, tools = await self._open(stack, target, launch)
                    up_since = time.monotonic()
                    self._opened(connection, tools, failures)
                    await self._follow(connection)
            except Exception as error:
                reason = self._reason(error, target) if up_since is None else self._end_sentence()
                startable = not isinstance(_cause(error), NotStartable)
            else:
                reason, startable = self._end_sentence(), True
            if self._closing.is_set():
                break
            if other_launches and up_since is None and self._state.end_reason is not None:
                launch_number += 1
                logger.debug("%s of %s %s; trying the next launch command", self._name, self.agent, reason)
                continue
            launch_number = 0
            if up_since is not None and time.monotonic() - up_since >= self._settings.mcp_restart_backoff_max:
                failures = 0
            failures += 1
            delay = restart_delay(failures, up_since is not None, self._settings) if startable else NEVER
            self._next_attempt = time.monotonic() + delay
            self._publish(None, reason)
            self._log_failure(reason, failures, delay)
            self.start_attempted.set()
            if not startable:
                return
            await self._sleep(delay)
        self.start_attempted.set()

    def _target(self, server: McpServer, stack: AsyncExitStack) -> Endpoint:
        target = endpoint(server, self._settings.environ, self._workspace(stack))
        return target if self._users is None else replace(target, auth=self._users.session_auth)

    def _workspace(self, stack: AsyncExitStack) -> ServerWorkspace | None:
        """The directories of a child process. They are removed after the process has stopped."""
        if self.server.transport != "stdio":
            return None
        owner, user_home = child_user(self._settings), home_of(self._settings.environ)
        self._directories = stack.enter_context(workspace(self.server.name, user_home, self.server.home, owner))
        return self._directories

    async def _open(
        self, stack: AsyncExitStack, target: Endpoint, launch: Launch
    ) -> tuple[ServerConnection, list[Tool]]:
        timeout = self.server.start_timeout or max(START_TIMEOUT, self._settings.mcp_start_timeout)
        if launch.downloads:
            timeout = max(timeout, self._settings.mcp_download_timeout)
        try:
            with self._download_reported() if launch.downloads else nullcontext():
                return await self._connect(stack, self._confined(replace(target, args=launch.args)), timeout)
        except CallTimedOut:
            raise ResultLost(f"did not start within {timeout:g} seconds{self._last_line}") from None

    def _confined(self, target: Endpoint) -> Endpoint:
        if self._directories is None:
            return target
        return confined(self.server, target, self._settings, self._directories)

    async def _connect(
        self, stack: AsyncExitStack, target: Endpoint, timeout: float
    ) -> tuple[ServerConnection, list[Tool]]:
        async with self._state.timeout(timeout):
            connection = await stack.enter_async_context(
                connect(self.server.transport, target, self._factory_argument, self._state)
            )
            return connection, await connection.list_tools()

    @contextmanager
    def _download_reported(self) -> Iterator[None]:
        """Log the progress of a download at regular intervals."""
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        timer: asyncio.TimerHandle

        def report() -> None:
            nonlocal timer
            self._publish(None, _DOWNLOADING)
            seconds = time.monotonic() - began
            logger.info("%s of %s %s (%.0f s)%s", self._name, self.agent, _DOWNLOADING, seconds, self._last_line)
            timer = loop.call_later(PROGRESS_INTERVAL, report)

        if not self.start_attempted.is_set():
            # Only before the first result: a server that fails at every start would seem to download each time.
            self._publish(None, _DOWNLOADING)
            logger.info("%s of %s starts from its registry; a download may take a while", self._name, self.agent)
        timer = loop.call_later(PROGRESS_INTERVAL, report)
        try:
            yield
        finally:
            timer.cancel()

    async def _follow(self, connection: ServerConnection) -> None:
        """Handle changes of the tools until the session ends."""
        try:
            while self._state.end_reason is None:
                if await self._state.wait_for_change():
                    await self._list_again(connection)
        finally:
            if self._state.end_reason is None:
                self._state.end("stopped")
            self._publish(None, self._end_sentence())
        await self._state.wait_until_idle()

    async def _list_again(self, connection: ServerConnection) -> None:
        try:
            async with self._state.timeout(self._settings.tool_timeout):
                self._adopt(await connection.list_tools())
        except Exception as error:
            if self._state.end_reason is None:
                logger.warning(
                    "%s of %s did not list its tools after a change: %s",
                    self._name,
                    self.agent,
                    type(error).__name__,
                )

    def _opened(self, connection: ServerConnection, tools: list[Tool], failures: int) -> None:
        level = logging.INFO if failures else logging.DEBUG
        logger.log(level, "%s of %s is up with %d tools", self._name, self.agent, len(tools))
        self._next_attempt = 0.0
        self._adopt(tools)
        self._publish(connection, None)
        self.start_attempted.set()

    def _adopt(self, tools: list[Tool]) -> None:
        if self.tools != tuple(tools):
            self.tools = tuple(tools)
            self._on_tools()

    def _publish(self, connection: ServerConnection | None, down_reason: str | None) -> None:
        self._connection = connection
        self.down_reason = down_reason
        self._published.set()
        self._published = asyncio.Event()

    async def _sleep(self, delay: float) -> None:
        try:
            async with asyncio.timeout(delay):
                await self._closing.wait()
        except TimeoutError:
            self._next_attempt = 0.0

    def _end_sentence(self) -> str:
        """Why the session ended, as the end of a sentence about the server."""
        return _SHUT_DOWN if self._closing.is_set() else f"{self._state.end_reason or 'stopped'}{self._last_line}"

    @property
    def _last_line(self) -> str:
        """The end of a sentence about a process: the last line of its standard error."""
        line = self._state.stderr.last_line if self._state.stderr else ""
        return f'; its last line on standard error was "{line}"' if line else ""

    def _reason(self, error: Exception, target: Endpoint | None) -> str:
        cause = _cause(error)
        if isinstance(cause, McpError) and isinstance(cause.error.data, ServerFailure):
            cause = cause.error.data
        if isinstance(cause, ServerFailure):
            return cause.reason
        if self._state.end_reason is not None:
            return f"{self._state.end_reason} while it was starting{self._last_line}{self._missing_download(target)}"
        if target is not None and logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: %s", self._name, target.redact("".join(traceback.format_exception(error))))
        if isinstance(cause, McpError):
            return f"refused the session (error {cause.error.code})"
        return f"could not be started ({type(cause).__name__}); LOG_LEVEL=debug shows where"

    def _missing_download(self, target: Endpoint | None) -> str:
        if target is None or self._settings.mcp_allow_downloads or not is_launcher(target.command):
            return ""
        return f"; with MCP_ALLOW_DOWNLOADS=true, {Path(target.command).name} may download what is not in its cache"

    def _log_failure(self, reason: str, failures: int, delay: float) -> None:
        again = "" if delay == NEVER else f"; next start in {delay:g} s"
        level = logging.WARNING if failures == 1 else logging.DEBUG
        logger.log(level, "%s of %s %s%s", self._name, self.agent, reason, again)


@asynccontextmanager
async def connect(
    transport: Transport, target: Endpoint, factory_argument: object, state: ConnectionState
) -> AsyncIterator[ServerConnection]:
    """An initialized connection. The task that enters the context must also leave it.

    The transports are imported on first use, as few installations need all of them.
    """
    match transport:
        case "memory":
            from ai_platform_engineering.mcp.memory import memory_connection  # noqa: PLC0415

            async with memory_connection(target, factory_argument, state) as connection:
                yield connection
        case "stdio":
            from ai_platform_engineering.mcp.process import stdio_streams  # noqa: PLC0415

            async with stdio_streams(target, state) as streams, open_session(streams, state) as session:
                yield session
        case "http":
            from ai_platform_engineering.mcp.streamable_http import http_streams  # noqa: PLC0415

            async with http_streams(target, state) as streams, open_session(streams, state) as session:
                yield session


def restart_delay(failures: int, was_up: bool, settings: Settings) -> float:
    """Seconds before the next start after consecutive failures: 0 after a single crash, then doubling."""
    doublings = failures - 1 - (1 if was_up else 0)
    if doublings < 0:
        return 0.0
    return float(min(settings.mcp_restart_backoff_max, settings.mcp_restart_backoff * 2 ** min(doublings, 32)))


def _cause(error: BaseException) -> BaseException:
    """The exception inside of a task group's exception group, if it is the only one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
