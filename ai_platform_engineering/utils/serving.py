"""Serving: takes a port, runs an ASGI app on it until a signal comes, and says when it is ready."""

from __future__ import annotations

import errno
import gc
import logging
import signal
import socket
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Final

import uvicorn

if TYPE_CHECKING:
    from starlette.types import ASGIApp

logger = logging.getLogger(__name__)

Stop = Callable[[], Awaitable[None]]

GRACEFUL_SHUTDOWN_SECONDS: Final = 3
KEEP_ALIVE_SECONDS: Final = 75
"""Longer than clients and proxies keep a connection that is not used, a minute as a rule: whoever hangs up first must
not be the one who is being sent a question."""


class ListenError(Exception):
    """The server cannot listen where it was told to. The text says what to change."""


class _Server(uvicorn.Server):
    """Calls `on_ready` when requests are answered, and `on_stop` when no more are accepted.

    What `on_stop` ends can still be sent to the callers that wait for it.
    """

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], on_stop: Stop) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and not self.should_exit:
            _collect_garbage_from_now_on()
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        try:
            await self._on_stop()
        except Exception:
            logger.exception("The work that was under way could not be ended in order")
        await super().shutdown(sockets)


def begin_start() -> None:
    """Look for no garbage until the server is ready: what is imported and built until then stays.

    Looking for it takes a sixth of the time that a start takes.
    """
    gc.disable()


def _collect_garbage_from_now_on() -> None:
    # Frozen, what the start has left is not looked through again: that would hold up requests for a tenth of a second.
    gc.freeze()
    gc.enable()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free port.

    It listens before the app has started, so that a port in use is found out before anything is started, and a caller
    who comes early waits instead of being refused.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ListenError(f"{host!r} is not an address of this machine; choose another with --host.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise ListenError(_refusal(host, port, error)) from error
    return listener


async def _nothing_to_stop() -> None:
    pass


def run(app: ASGIApp, listener: socket.socket, on_ready: Callable[[], None], on_stop: Stop = _nothing_to_stop) -> int:
    """Serve `app` until SIGINT or SIGTERM; the exit code of the process.

    The order at the end: no new connections, `on_stop`, the responses that are under way, the app's own shutdown.
    """
    config = uvicorn.Config(
        app,
        loop="uvloop" if find_spec("uvloop") else "asyncio",
        http="httptools" if find_spec("httptools") else "h11",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = _Server(config, on_ready, on_stop)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # uvicorn handles these while it serves and then raises them again for whoever had them before. Asked to stop and
    # stopped in order is a success, not a death by signal.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, stop)
    try:
        server.run(sockets=[listener])
    except SystemExit:
        # The app did not start; uvicorn has logged why.
        return 1
    return 0


def _refusal(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} on {host} is already in use; choose another with --port (0 takes any free one)."
        case errno.EACCES:
            return f"Port {port} needs more rights than this user has; choose one above 1023 with --port."
        case errno.EADDRNOTAVAIL:
            return f"{host!r} is not an address of this machine; choose another with --host."
        case _:
            return f"Cannot listen on {host}, port {port}: {error.strerror}."
