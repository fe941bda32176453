"""Connections to other servers: how long an idle one is kept, and why one failed.

A reason is a phrase without internal names.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Final

import httpx

from ai_platform_engineering.utils.outbound.policy import RefusedError

CLIENT_KEEP_ALIVE_SECONDS: Final = 3.0
"""How long a client keeps an idle connection to a foreign server. Many servers, such as those on uvicorn or Node, close
it after 5 s, and a request that races with the close is lost."""
CLIENT_LIMITS: Final = httpx.Limits(
    max_connections=None, max_keepalive_connections=20, keepalive_expiry=CLIENT_KEEP_ALIVE_SECONDS
)
"""For clients whose requests may take long: none waits for the connection of another."""

_REASONS: Final[Sequence[tuple[type[Exception], str]]] = (
    (ssl.SSLCertVerificationError, "its TLS certificate is not trusted"),
    (ssl.SSLError, "no TLS connection"),
    (socket.gaierror, "host name not found"),
    (httpx.TimeoutException, "no answer in time"),
    (httpx.RemoteProtocolError, "the connection was closed without an answer"),
    (httpx.ReadError, "the connection was closed without an answer"),
)
_ERRNO_REASONS: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETUNREACH: "host unreachable",
}


def reason_of(error: BaseException) -> str:
    for cause in causes(error):
        if isinstance(cause, RefusedError):
            return cause.reason
        for kind, reason in _REASONS:
            if isinstance(cause, kind):
                return reason
        if isinstance(cause, OSError) and cause.errno in _ERRNO_REASONS:
            return _ERRNO_REASONS[cause.errno]
    return "no connection"


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, the deepest first."""
    chain: list[BaseException] = []
    seen: set[int] = set()
    unvisited: list[BaseException] = [error]
    while unvisited:
        cause = unvisited.pop()
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        chain.append(cause)
        if isinstance(cause, BaseExceptionGroup):
            unvisited.extend(cause.exceptions)
        unvisited.extend(linked for linked in (cause.__cause__, cause.__context__) if linked is not None)
    yield from reversed(chain)
