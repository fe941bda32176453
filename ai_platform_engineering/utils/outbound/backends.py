"""Connections to checked addresses: a name is resolved once, its addresses are checked, and the connection goes to one
of them. httpcore is imported with the first client, as httpx itself does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import anyio
import httpcore

from ai_platform_engineering.utils.outbound.addresses import Address, Resolve, literal, resolve_blocking
from ai_platform_engineering.utils.outbound.policy import OutboundPolicy, Scheme

# The next address is tried meanwhile, so that one that does not answer delays the connection no longer.
_NEXT_ADDRESS_SECONDS: Final = 0.25
_ERRORS: Final = (httpcore.ConnectError, httpcore.ConnectTimeout)


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connections of one scheme. httpcore passes the host name, and verifies the certificate with it afterwards."""

    def __init__(self, policy: OutboundPolicy, scheme: Scheme, resolve: Resolve) -> None:
        self._policy = policy
        self._scheme = scheme
        self._resolve = resolve
        self._connections = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            with anyio.fail_after(timeout):
                given = literal(host)
                found = await self._resolve(host) if given is None else [given]
                return await self._first(self._policy.checked(host, found, self._scheme), port, socket_options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def _first(
        self, addresses: Sequence[Address], port: int, socket_options: Iterable[Any] | None
    ) -> httpcore.AsyncNetworkStream:
        """The connection to the address that answers first. Raises the first problem if none does."""
        connected: list[httpcore.AsyncNetworkStream] = []
        problems: list[Exception] = []

        async def attempt(address: Address, ended: anyio.Event) -> None:
            try:
                stream = await self._connections.connect_tcp(str(address), port, socket_options=socket_options)
            except _ERRORS as error:
                problems.append(error)
            else:
                if connected:
                    await _close(stream)
                    return
                connected.append(stream)
                attempts.cancel_scope.cancel()
            finally:
                ended.set()

        try:
            async with anyio.create_task_group() as attempts:
                for address in addresses:
                    ended = anyio.Event()
                    attempts.start_soon(attempt, address, ended)
                    with anyio.move_on_after(_NEXT_ADDRESS_SECONDS if len(addresses) > 1 else None):
                        await ended.wait()
                    if connected:
                        break
        except BaseException:
            for stream in connected:
                await _close(stream)
            raise
        if not connected:
            raise problems[0]
        return connected[0]


async def _close(stream: httpcore.AsyncNetworkStream) -> None:
    with anyio.CancelScope(shield=True):
        await stream.aclose()


class BlockingBackend(httpcore.NetworkBackend):
    """`CheckedBackend` for clients that block a thread. It tries one address after the other."""

    def __init__(
        self,
        policy: OutboundPolicy,
        scheme: Scheme,
        resolve: Callable[[str], Sequence[Address]] = resolve_blocking,
    ) -> None:
        self._policy = policy
        self._scheme = scheme
        self._resolve = resolve
        self._connections = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        end = None if timeout is None else time.monotonic() + timeout
        given = literal(host)
        problem: Exception | None = None
        for address in self._policy.checked(host, self._resolve(host) if given is None else [given], self._scheme):
            left = None if end is None else max(end - time.monotonic(), 0.001)
            try:
                return self._connections.connect_tcp(str(address), port, left, socket_options=socket_options)
            except _ERRORS as error:
                problem = problem or error
        raise problem or httpcore.ConnectError(f"{host} has no address")
