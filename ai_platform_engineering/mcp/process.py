"""A stdio MCP server: a child process of its own session, spoken to in lines over its standard input and output.

The child is the leader of a process group, and the group ends with it: wrappers such as `npx` and `uvx` start the
real server as a child of theirs, which must not outlive them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, JSONRPCRequest
from pydantic import ValidationError

from ai_platform_engineering.mcp.connection import Inbox, Lifeline, Outbox, Streams, deliver, failure
from ai_platform_engineering.mcp.errors import NotSent
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.stderr_tail import StderrTail

logger = logging.getLogger(__name__)

STDIN, STDOUT, STDERR = 0, 1, 2
CLOSE_GRACE: Final = 0.5
"""Seconds a server has to exit by itself once its input is closed."""
TERMINATE_GRACE: Final = 2.0
"""Seconds its process group has after SIGTERM."""
_LAST_WORDS: Final = 1.0
"""Seconds between the end of the output and the exit of the process that are taken for one event."""
_MESSAGE_LIMIT: Final = 64 * 1024 * 1024
_LOG_LINE_LIMIT: Final = 16 * 1024
_POLL: Final = 0.05
_PROC: Final = Path("/proc")


class Lines:
    """Cuts a stream of bytes into lines, and reports the ones that grow too long instead of keeping them."""

    def __init__(self, on_line: Callable[[bytes], None], on_overflow: Callable[[], None], limit: int) -> None:
        self._on_line = on_line
        self._on_overflow = on_overflow
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._rest += first
        for following in others:
            self._finish()
            self._rest += following
        if len(self._rest) > self._limit:
            self._rest.clear()
            self._skipping = True
            self._on_overflow()

    def end(self) -> None:
        """The stream has ended: what is left is a line too."""
        self._finish()

    def _finish(self) -> None:
        line = bytes(self._rest)
        self._rest.clear()
        if self._skipping:
            self._skipping = False
        elif line.strip():
            self._on_line(line)


class ServerProcess(asyncio.SubprocessProtocol):
    """The child process: what it writes goes to the inbox and to the log, its end goes to the lifeline."""

    def __init__(self, endpoint: Endpoint, inbox: Inbox, lifeline: Lifeline) -> None:
        self._endpoint = endpoint
        self._inbox = inbox
        self._lifeline = lifeline
        self._output = Lines(self._received, self._too_long, _MESSAGE_LIMIT)
        self._errors = Lines(self._logged, lambda: None, _LOG_LINE_LIMIT)
        self._transport: asyncio.SubprocessTransport | None = None
        self._stderr = lifeline.stderr = StderrTail(endpoint.redact)
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
            self._ending()

    def process_exited(self) -> None:
        self.exited.set()
        self._ending()

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
            # A pipe whose reader is gone refuses the whole line at once, so nothing of it was read.
            if stdin is None or stdin.is_closing():
                self._not_sent(request)
            else:
                self._lifeline.sent(request)

    def _not_sent(self, request: JSONRPCRequest) -> None:
        """Say so, with the reason: how the process ended may not be known yet."""
        if self._lifeline.ended is not None:
            deliver(self._inbox, failure(request, NotSent(self._lifeline.ended)))
        else:
            self._unsent.append(request)
            self._ending()

    def close_input(self) -> None:
        if (stdin := self.process.get_pipe_transport(STDIN)) is not None:
            stdin.close()

    def signal_group(self, number: int) -> bool:
        """Signals everything in the process group; False once nothing is left of it.

        From then on nothing is signalled, because its number may be given to another.
        """
        if not self._group_gone:
            try:
                os.killpg(self.process.get_pid(), number)
            except (ProcessLookupError, PermissionError):
                self._group_gone = True
        return not self._group_gone

    def group_lives(self) -> bool:
        """Whether anything in the process group still runs.

        A child that lost its parent stays in the group after its death until init looks after it, which in a
        container may take seconds or for ever; where the system tells, such a child does not count.
        """
        group = self.process.get_pid()
        return self.signal_group(0) and (
            not _PROC.is_dir() or any(_group_of_living(stat) == group for stat in _stats())
        )

    def _received(self, line: bytes) -> None:
        try:
            message = JSONRPCMessage.model_validate_json(line)
        except ValidationError:
            logger.debug("%s wrote a line that is not a message", self._endpoint.name)
        else:
            deliver(self._inbox, SessionMessage(message))

    def _too_long(self) -> None:
        self._lifeline.end(f"wrote a message of more than {_MESSAGE_LIMIT >> 20} MiB")

    def _logged(self, line: bytes) -> None:
        self._stderr.add(line)
        if logger.isEnabledFor(logging.DEBUG):
            text = self._endpoint.redact(line.decode(errors="replace").rstrip())
            logger.debug("%s: %s", self._endpoint.name, text)

    def _ending(self) -> None:
        if self.exited.is_set() and not self._open_pipes:
            self._end()
        else:
            asyncio.get_running_loop().call_later(_LAST_WORDS, self._end)

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
        self._lifeline.end(reason)
        for request in self._unsent:
            deliver(self._inbox, failure(request, NotSent(reason)))
        self._unsent.clear()
        self._inbox.close()


@asynccontextmanager
async def stdio_streams(endpoint: Endpoint, lifeline: Lifeline) -> AsyncIterator[Streams]:
    """Starts the server's process; it and all its children are gone when this is left."""
    inbox, inbox_reader = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    outbox_writer, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        process = await _start(endpoint, inbox, lifeline)
        sender = asyncio.create_task(_send_all(process, outbox))
        try:
            yield inbox_reader, outbox_writer
        finally:
            sender.cancel()
            await _stop(process)
    finally:
        for stream in (inbox, inbox_reader, outbox_writer, outbox):
            stream.close()


async def _start(endpoint: Endpoint, inbox: Inbox, lifeline: Lifeline) -> ServerProcess:
    try:
        _, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: ServerProcess(endpoint, inbox, lifeline),
            endpoint.command,
            *endpoint.args,
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
    """Asks, then insists, then kills. Killing needs no event loop, so it happens even when the rest is cut off."""
    try:
        process.close_input()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_GRACE):
                await process.exited.wait()
        if process.signal_group(signal.SIGTERM):
            with suppress(TimeoutError):
                async with asyncio.timeout(TERMINATE_GRACE):
                    while process.group_lives():  # noqa: ASYNC110 - nothing announces the end of a process group
                        await asyncio.sleep(_POLL)
    finally:
        process.signal_group(signal.SIGKILL)
        process.process.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            await process.exited.wait()


def _stats() -> Iterator[str]:
    for stat in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            yield stat.read_text(errors="replace")


def _group_of_living(stat: str) -> int | None:
    """The process group in a line of /proc/<pid>/stat, unless the process is dead. Its name may hold anything."""
    state, _parent, group = stat.rpartition(")")[2].split()[:3]
    return None if state in {"Z", "X"} else int(group)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
