"""uvicorn: an HTTP connection whose requests are limited in size and whose phase is known.

uvicorn limits neither the size nor the number of headers, and has no time limit for requests. Its protocol class and
the attributes of a request's cycle are not documented.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

MAX_HEADERS: Final = 100
MAX_PIPELINED: Final = 16
"""Requests of one connection that wait for the response to an earlier one."""
_MAX_DRAINED_BYTES: Final = 1 << 20
"""How much of a request is still read after its response."""


class _Refusal(NamedTuple):
    reason: str
    """For the log."""
    status: int
    message: str


_TOO_LARGE: Final = _Refusal(
    "header too large", 431, "The request line and headers are too large, or there are too many headers."
)
_INVALID: Final = _Refusal("invalid request", 400, "Invalid HTTP request received.")
_PIPELINED: Final = _Refusal("too many pipelined requests", 400, "Too many pipelined requests.")


class Watch(Protocol):
    """The open connections of a server by phase, each with the time at which the phase began."""

    waiting: dict[HttpConnection, float]
    """The header of a request is not complete."""
    active: dict[HttpConnection, float]
    """A request is in progress."""
    idle: dict[HttpConnection, float]
    """Between two requests."""
    max_header_bytes: int
    """Size of a request line and its headers."""

    def opened(self, connection: HttpConnection) -> None: ...

    def closed(self, connection: HttpConnection) -> None: ...

    def refused(self, reason: str) -> None: ...


class _RefusedError(Exception):
    """Stops the parser."""


class HttpConnection(HttpToolsProtocol):
    # Every request passes through the overridden methods, so they do as little as possible: `super()` costs more than
    # the name of the class.

    def __init__(
        self,
        watch: Watch,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.header_bytes = 0
        """Size of the incomplete header, without the data that is being parsed."""
        self.body_bytes = 0
        """Size of the incomplete body, without the data that came with the header."""
        self._watch = watch
        self._phase = watch.waiting
        self._in_body = False
        self._arrived = 0
        """Size of the data that is being parsed."""
        self._framing_bytes = 0
        """Size of chunk extensions and trailers."""
        self._drained_bytes = 0
        """How much of the request has arrived after its response."""
        self._refusal: _Refusal | None = None

    @property
    def is_receiving_body(self) -> bool:
        """Whether the body is incomplete, and the client is the reason."""
        return self._in_body and not self.flow.read_paused

    @property
    def has_response(self) -> bool:
        """Whether the response to the last request has begun."""
        return self.cycle is not None and self.cycle.response_started

    @property
    def is_response_complete(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    @property
    def unsent_bytes(self) -> int:
        """Size of the response that the client has not read, if the server waits for it, else 0."""
        return self.transport.get_write_buffer_size() if self.flow.write_paused else 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.closed(self)
        super().connection_lost(exc)

    def refuse(self, reason: str, status: int, message: str) -> None:
        """Close the connection, with a response if the client expects one. `reason` is for the log."""
        if self.transport.is_closing():
            return
        self._watch.refused(reason)
        if self._can_respond():
            self._respond(status, message)
        self.transport.close()

    def _can_respond(self) -> bool:
        """Whether a response now is one to the request that is being received, not to an earlier one."""
        if self.cycle is None or self.cycle.response_complete:
            return not self._in_body
        return self._in_body and not self.cycle.response_started and not self.pipeline

    def _respond(self, status: int, message: str) -> None:
        body = message.encode("ascii")
        lines = [STATUS_LINE[status]]
        lines += [name + b": " + value + b"\r\n" for name, value in self.server_state.default_headers]
        lines += [
            b"content-type: text/plain; charset=utf-8\r\n",
            b"content-length: %d\r\n" % len(body),
            b"connection: close\r\n\r\n",
            body,
        ]
        self.transport.write(b"".join(lines))

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        was_in_body = self._in_body
        buffered = len(self.cycle.body) if was_in_body else 0
        self._arrived = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # The request is served without the upgrade. The parser accepts no other.
        except httptools.HttpParserError:
            self.refuse(*(self._refusal or _INVALID))
            return
        if self._in_body:
            if was_in_body:
                self._check_body(len(data), len(self.cycle.body) - buffered)
        elif self._phase is not self._watch.active or self.scope is not self.cycle.scope:
            self._check_incomplete_header(0 if was_in_body else len(data))

    def _check_body(self, arrived: int, grown: int) -> None:
        if self.cycle.response_complete:
            self._drained_bytes += arrived
        elif grown > 0:
            self.body_bytes += grown
        else:
            self._framing_bytes += arrived
        if self._framing_bytes > self._watch.max_header_bytes or self._drained_bytes > _MAX_DRAINED_BYTES:
            self.refuse(*_INVALID)

    def _check_incomplete_header(self, arrived: int) -> None:
        if self._phase is self._watch.idle:
            self._enter(self._watch.waiting)
        self.header_bytes += arrived
        if self.header_bytes > self._watch.max_header_bytes or len(self.headers or ()) > MAX_HEADERS:
            self.refuse(*_TOO_LARGE)

    def on_headers_complete(self) -> None:
        if len(self.headers) > MAX_HEADERS or (
            self.header_bytes + self._arrived > self._watch.max_header_bytes and self._is_header_too_large()
        ):
            self._stop_parser(_TOO_LARGE)
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop_parser(_PIPELINED)
        HttpToolsProtocol.on_headers_complete(self)
        # Trailers must not become headers of a request that has been authenticated without them.
        self.headers = []
        self.header_bytes = self.body_bytes = self._framing_bytes = self._drained_bytes = 0
        self._in_body = True
        self._enter(self._watch.active)

    def _is_header_too_large(self) -> bool:
        """The data that has arrived may include a body, so only the parsed header counts."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        return size > self._watch.max_header_bytes

    def _stop_parser(self, refusal: _Refusal) -> NoReturn:
        self._refusal = refusal
        raise _RefusedError

    def on_message_complete(self) -> None:
        self._in_body = False
        HttpToolsProtocol.on_message_complete(self)
        if self.cycle.response_complete:
            self._enter(self._watch.idle)

    def on_response_complete(self) -> None:
        HttpToolsProtocol.on_response_complete(self)
        # `cycle` is the last request: none is pending if it has its response.
        if self.cycle.response_complete and not self._in_body:
            self._enter(self._watch.idle)

    def _enter(self, phase: dict[HttpConnection, float]) -> None:
        self._phase.pop(self, None)
        self._phase = phase
        phase[self] = monotonic()
