"""A stdio MCP server: a child process that exchanges lines over its standard input and output.

The child leads its own process group, and the whole group is stopped with it: launchers such as `npx` and `uvx` start
the real server as their child, which must not outlive them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, JSONRPCRequest
from pydantic import ValidationError

from ai_platform_engineering.mcp.confinement import command_line
from ai_platform_engineering.mcp.connection import (
    ConnectionState,
    Inbox,
    InFlightCall,
    Outbox,
    Streams,
    deliver,
    failure_response,
)
from ai_platform_engineering.mcp.errors import NotSent
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.process_output import LineSplitter, StderrTail
from ai_platform_engineering.utils.process_secrets import hide_process

logger = logging.getLogger(__name__)

STDIN, STDOUT, STDERR = 0, 1, 2
CLOSE_GRACE: Final = 0.5
"""Seconds for a server to exit after its input was closed."""
TERMINATE_GRACE: Final = 2.0
"""Seconds for its process group to exit after SIGTERM."""
_KILL_GRACE: Final = 5.0
"""Seconds for it to exit after SIGKILL, which takes long only on a machine that is busy."""
_EXIT_DELAY: Final = 1.0
"""Seconds to wait for the exit code after the output was closed, and for the rest of the output after the exit."""
_MESSAGE_LIMIT: Final = 64 * 1024 * 1024
_LOG_LINE_LIMIT: Final = 16 * 1024
_POLL: Final = 0.05
_PROC: Final = Path("/proc")


class ServerProcess(asyncio.SubprocessProtocol):
    """The child process. Its messages go to the inbox, its standard error to the log, its end to the state."""

    def __init__(self, endpoint: Endpoint, inbox: Inbox, state: ConnectionState) -> None:
        self._endpoint = endpoint
        self._inbox = inbox
        self._state = state
        self._output = LineSplitter(self._received, self._too_long, _MESSAGE_LIMIT)
        self._errors = LineSplitter(self._stderr_line, lambda: None, _LOG_LINE_LIMIT)
        self._transport: asyncio.SubprocessTransport | None = None
        self._stderr = state.stderr = StderrTail(endpoint.redact)
        self._open_pipes = {STDOUT, STDERR}
        self._unsent: list[JSONRPCRequest] = []
        self._group_gone = False
        self.exited = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self._output if fd == STDOUT else self._errors).feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open_pipes.discard(fd)
        if fd == STDERR:
            self._errors.end()
        if fd != STDERR or self.exited.is_set():
            self._schedule_end()

    def process_exited(self) -> None:
        self.exited.set()
        self._schedule_end()

    @property
    def process(self) -> asyncio.SubprocessTransport:
        if self._transport is None:
            raise RuntimeError("the process has not been started")
        return self._transport

    def send(self, message: SessionMessage) -> None:
        line = message.message.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n"
        stdin = cast(asyncio.WriteTransport | None, self.process.get_pipe_transport(STDIN))
        if stdin is not None and not stdin.is_closing():
            stdin.write(line)
        if isinstance(message.message.root, JSONRPCRequest):
            request = message.message.root
            # A pipe without a reader refuses the whole line, so the server has read none of it.
            if stdin is None or stdin.is_closing():
                self._not_sent(request)
            elif isinstance(message.metadata, InFlightCall):
                message.metadata.sent(request.id)

    def _not_sent(self, request: JSONRPCRequest) -> None:
        """Report the request as not sent, with the reason, which may only be known after the process has exited."""
        if self._state.end_reason is not None:
            deliver(self._inbox, failure_response(request, NotSent(self._state.end_reason)))
        else:
            self._unsent.append(request)
            self._schedule_end()

    def close_input(self) -> None:
        if (stdin := self.process.get_pipe_transport(STDIN)) is not None:
            stdin.close()

    def signal_group(self, number: int) -> bool:
        """Signal all processes of the group; False if the group is gone.

        A group that is gone is never signalled again, because its id may be reused.
        """
        if not self._group_gone:
            try:
                os.killpg(self.process.get_pid(), number)
            except (ProcessLookupError, PermissionError):
                self._group_gone = True
        return not self._group_gone

    def group_lives(self) -> bool:
        """Whether a process of the group is still running.

        A zombie stays in the group until init reaps it, which may take seconds in a container, or never happen. Where
        /proc exists, zombies do not count.
        """
        group = self.process.get_pid()
        return self.signal_group(0) and (
            not _PROC.is_dir() or any(_group_of_living(stat) == group for stat in _stats())
        )

    def _received(self, line: bytes) -> None:
        try:
            message = JSONRPCMessage.model_validate_json(line)
        except ValidationError:
            logger.debug("%s wrote a line that is not an MCP message", self._endpoint.name)
        else:
            deliver(self._inbox, SessionMessage(message))

    def _too_long(self) -> None:
        self._state.end(f"wrote a message of more than {_MESSAGE_LIMIT >> 20} MiB")

    def _stderr_line(self, line: bytes) -> None:
        self._stderr.add(line)
        if logger.isEnabledFor(logging.DEBUG):
            text = self._endpoint.redact(line.decode(errors="replace").rstrip())
            logger.debug("%s: %s", self._endpoint.name, text)

    def _schedule_end(self) -> None:
        if self.exited.is_set() and not self._open_pipes:
            self._end()
        else:
            asyncio.get_running_loop().call_later(_EXIT_DELAY, self._end)

    def _end(self) -> None:
        code = self.process.get_returncode()
        match code:
            case None:
                reason = "closed its connection"
            case 0:
                reason = "stopped"
            case _ if code < 0:
                reason = f"was stopped by {_signal_name(-code)}"
            case _:
                reason = f"stopped with exit code {code}"
        self._state.end(reason)
        for request in self._unsent:
            deliver(self._inbox, failure_response(request, NotSent(reason)))
        self._unsent.clear()
        self._inbox.close()


@asynccontextmanager
async def stdio_streams(endpoint: Endpoint, state: ConnectionState) -> AsyncIterator[Streams]:
    """Start the server's process. It and all its children have stopped when the context is left."""
    inbox, inbox_reader = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    outbox_writer, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        process = await _start(endpoint, inbox, state)
        sender = asyncio.create_task(_send_all(process, outbox))
        try:
            yield inbox_reader, outbox_writer
        finally:
            sender.cancel()
            await _stop(process)
    finally:
        for stream in (inbox, inbox_reader, outbox_writer, outbox):
            stream.close()


async def _start(endpoint: Endpoint, inbox: Inbox, state: ConnectionState) -> ServerProcess:
    hide_process()
    try:
        _, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: ServerProcess(endpoint, inbox, state),
            *command_line(endpoint),
            env=endpoint.env,
            cwd=endpoint.directory,
            start_new_session=True,
        )
    except FileNotFoundError:
        problem = "was not found; install it, or put its full path into the manifest"
    except PermissionError:
        problem = "may not be executed; check its permissions"
    except (OSError, ValueError):
        problem = "cannot be executed; check the command and its arguments in the manifest"
    else:
        return process
    raise NotSent(f"was not started because the command {endpoint.redact(endpoint.command)!r} {problem}")


async def _send_all(process: ServerProcess, outbox: Outbox) -> None:
    async for message in outbox:
        process.send(message)


async def _stop(process: ServerProcess) -> None:
    """Close the input, then send SIGTERM, then SIGKILL. A cancellation leads to SIGKILL at once."""
    try:
        process.close_input()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_GRACE):
                await process.exited.wait()
        if process.signal_group(signal.SIGTERM):
            with suppress(TimeoutError):
                async with asyncio.timeout(TERMINATE_GRACE):
                    while process.group_lives():  # noqa: ASYNC110 - there is no event for the end of a process group
                        await asyncio.sleep(_POLL)
    finally:
        process.signal_group(signal.SIGKILL)
        process.process.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_KILL_GRACE):
                await process.exited.wait()


def _stats() -> Iterator[str]:
    for stat in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            yield stat.read_text(errors="replace")


def _group_of_living(stat: str) -> int | None:
    """The process group in a line of /proc/<pid>/stat; None for a zombie. The name in it may contain any character."""
    state, _parent, group = stat.rpartition(")")[2].split()[:3]
    return None if state in {"Z", "X"} else int(group)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
