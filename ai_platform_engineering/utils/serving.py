"""Serving: listens on a port, runs an ASGI app until a signal stops it, and tunes the process for that."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import uvicorn

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.connection_limits import ConnectionLimits, Connections
from ai_platform_engineering.utils.process_secrets import hide_process, remove_secrets

if TYPE_CHECKING:
    from starlette.types import ASGIApp

logger = logging.getLogger(__name__)

Stop = Callable[[float], Coroutine[Any, Any, None]]
"""Ends all work. It may take the given number of seconds."""

Until = Callable[[], Coroutine[Any, Any, None]]

GRACEFUL_SHUTDOWN_SECONDS: Final = 3
_POLL_SECONDS: Final = 0.1
_TICKS_PER_SECOND: Final = 10
_YOUNG_OBJECTS: Final = 20_000
"""After so many new objects, garbage is collected. A request leaves some thousand for a moment, most of them without
cycles: with Python's default of 700, it was interrupted by several collections that found little."""
KEEP_ALIVE_SECONDS: Final = 75
"""The server's keep-alive must outlive that of clients and proxies, usually a minute, or a request races with the
close."""


class ListenError(Exception):
    """The server cannot listen on the given host and port. The text says what to change."""


class _Server(uvicorn.Server):
    """Calls `on_ready` when the server accepts requests, and `on_stop` when it accepts no more.

    Responses that `on_stop` completes are still sent. It has `grace` seconds, and none after SIGINT.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        connections: Connections,
        on_ready: Callable[[], None],
        on_stop: Stop,
        grace: float,
        until: Until | None,
    ) -> None:
        super().__init__(config)
        self._connections = connections
        self._until = until
        self._waiting: asyncio.Task[None] | None = None
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._grace = grace
        self._interrupted = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._interrupted = self._interrupted or sig == signal.SIGINT

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and not self.should_exit:
            _enable_garbage_collection()
            self._on_ready()
            if self._until is not None:
                self._waiting = asyncio.create_task(self._stop_after(self._until))

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_PER_SECOND == 0:
            self._connections.close_overdue()
        return await super().on_tick(counter)

    async def _stop_after(self, until: Until) -> None:
        try:
            await until()
        finally:
            self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        if self._waiting is not None:
            self._waiting.cancel()
        try:
            await self._stop_work()
        except Exception:
            logger.exception("Running work could not be stopped cleanly")
        await super().shutdown(sockets)

    async def _stop_work(self) -> None:
        stopping = asyncio.create_task(self._on_stop(0.0 if self._interrupted else self._grace))
        while not stopping.done() and not self._interrupted:
            # A signal does not wake the event loop.
            await asyncio.wait({stopping}, timeout=_POLL_SECONDS)
        if not stopping.done():
            await self._on_stop(0.0)
        await stopping


def begin_start(settings: Settings) -> None:
    """Protect the secrets of the process, and disable garbage collection until the server is ready.

    Objects created during the start stay alive, and collecting takes a sixth of the start time.
    """
    hide_process()
    remove_secrets(settings)
    gc.disable()


def _enable_garbage_collection() -> None:
    # Frozen objects are not scanned again; a scan of all of them would block requests for a tenth of a second.
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    gc.enable()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free port.

    The socket listens before the app is started: a port in use is detected first, and early callers wait instead of
    being refused.
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


async def _nothing_to_stop(_grace: float) -> None:
    pass


def run(
    app: ASGIApp,
    listener: socket.socket,
    on_ready: Callable[[], None],
    limits: ConnectionLimits,
    on_stop: Stop = _nothing_to_stop,
    grace: float = 0.0,
    until: Until | None = None,
) -> int:
    """Serve `app` until SIGINT or SIGTERM, or until `until` returns; the exit code of the process.

    The address and the scheme of a request come from the headers of a proxy, if it is one of
    `limits.proxies`.

    The order of the shutdown: no new connections, `on_stop` (with `grace` seconds after SIGTERM), responses in flight,
    the app's own shutdown.
    """
    connections = Connections(limits, KEEP_ALIVE_SECONDS)
    config = uvicorn.Config(
        app,
        loop="uvloop" if find_spec("uvloop") else "asyncio",
        http=_http(connections),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=limits.proxies,
        lifespan="on",
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = _Server(config, connections, on_ready, on_stop, grace, until)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # uvicorn handles these signals while it serves, then raises them again for the previous handlers. A requested and
    # clean stop is a success, not a death by signal.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, stop)
    try:
        server.run(sockets=[listener])
    except SystemExit:
        # The app did not start; uvicorn has logged why.
        return 1
    return 0


def _http(connections: Connections) -> type[asyncio.Protocol] | Literal["h11"]:
    """The HTTP protocol. Without httptools, on Windows, requests have h11's own limits only."""
    if not find_spec("httptools"):
        return "h11"
    from ai_platform_engineering.compat.uvicorn import HttpConnection  # noqa: PLC0415 - imports httptools

    return cast(type[asyncio.Protocol], partial(HttpConnection, connections))


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
