"""The event loop of all tests: the test that leaves a socket open or a process running fails.

Otherwise the garbage collector finds it during a later test of the same worker, and that test fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from selectors import BaseSelector
from socket import socket
from typing import Any

import uvicorn

_EXIT_SECONDS = 10.0
"""A process that was killed ends much sooner, also on a busy machine."""


class CheckedEventLoop(asyncio.SelectorEventLoop):
    """Raises `AssertionError` on `close` if a connection, a listener or a pipe is still open, or if a process runs."""

    # Private parts of asyncio: `tests/test_event_loops.py` fails if they change.
    _transports: Mapping[int, asyncio.Transport]
    _selector: BaseSelector
    _ssock: socket

    def __init__(self) -> None:
        super().__init__()
        self._processes: list[asyncio.SubprocessTransport] = []

    async def subprocess_exec(self, *arguments: Any, **options: Any) -> Any:
        transport, protocol = await super().subprocess_exec(*arguments, **options)
        self._processes.append(transport)
        return transport, protocol

    def close(self) -> None:
        left_open = [] if self.is_closed() else self._left_open()
        super().close()
        assert not left_open, f"The test left open: {'; '.join(left_open)}"

    def _left_open(self) -> list[str]:
        return [*self._running_processes(), *self._connections_left_open(), *self._descriptors_left_open()]

    def _running_processes(self) -> list[str]:
        """Those that were killed get the time to exit."""

        async def wait_for_exits() -> None:
            while any(process.get_returncode() is None for process in self._processes):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.001)

        with suppress(TimeoutError):
            self.run_until_complete(asyncio.wait_for(wait_for_exits(), _EXIT_SECONDS))
        running = [process for process in self._processes if process.get_returncode() is None]
        for process in running:
            process.close()
        self.run_until_complete(wait_for_exits())
        return [f"the process of {process.get_extra_info('subprocess').args}" for process in running]

    def _connections_left_open(self) -> list[str]:
        transports = list(self._transports.values())
        described = [_description(transport) for transport in transports if not transport.is_closing()]
        for transport in transports:
            # Also one that is closing: it keeps its socket until its peer has read everything.
            transport.abort()
        # A transport closes its socket in the next iteration of the loop.
        self.run_until_complete(asyncio.sleep(0))
        return described

    def _descriptors_left_open(self) -> list[str]:
        """Listeners, pipes and sockets of other libraries, as far as the loop waits for them."""
        keys = [key for key in self._selector.get_map().values() if key.fd != self._ssock.fileno()]
        return [f"descriptor {key.fd}, watched by {key.data}" for key in keys]


async def abort_connections(server: uvicorn.Server) -> None:
    """Close the connections of a server that no longer listens."""
    # A connection that was accepted just before takes some iterations of the loop to get its transport.
    for _ in range(5):
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


def _description(transport: asyncio.Transport) -> str:
    protocol = type(transport.get_protocol())
    own, peer = (transport.get_extra_info(name) for name in ("sockname", "peername"))
    return f"a connection from {own} to {peer} of {protocol.__module__}.{protocol.__qualname__}"
