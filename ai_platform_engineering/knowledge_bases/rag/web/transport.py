"""The HTTP transport: it resolves a host, checks its addresses against the policy, and connects to an allowed one.

The connection uses the checked address, so a second DNS lookup cannot lead elsewhere (DNS rebinding). The Host header
and the check of the certificate still use the name.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

import httpx

from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.utils.addresses import MAX_ADDRESSES, Address, Resolve, literal, resolve
from ai_platform_engineering.utils.errors import ReadableError

CONNECT_SECONDS = 5.0
"""Then the next address of the host is tried."""


class FetchError(ReadableError):
    """A page was not read: which one, why, and the way out.

    `status` is the HTTP status, if there is a response, and `retry_after` the seconds in its Retry-After header.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class CheckedTransport(httpx.AsyncBaseTransport):
    def __init__(self, policy: WebPolicy, resolve: Resolve = resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._context: ssl.SSLContext | None = None
        # One for each host: a connection to an address belongs to the host name whose certificate was checked.
        self._transports: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.raw_host.decode("ascii")
        if reason := self._policy.refuses_host(host):
            raise FetchError(f"{host} was not contacted: it is {reason}.")
        transport = self._transport(host)
        problem: httpx.TransportError | None = None
        for address in await self._reachable(host):
            try:
                return await transport.handle_async_request(_with_address(address, request, host))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = problem or error
        raise problem or FetchError(f"{host} has no address: no such name, or no DNS server knows it.")

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    async def _reachable(self, host: str) -> Sequence[Address]:
        given = literal(host)
        found = [given] if given is not None else await self._resolve(host)
        reasons = [self._policy.refuses_address(address) for address in found]
        reachable = [address for address, reason in zip(found, reasons, strict=True) if reason is None]
        if found and not reachable:
            place = host if given is not None else f"{host} ({found[0]})"
            raise FetchError(f"{place} was not contacted: it is {reasons[0]}.")
        return reachable[:MAX_ADDRESSES]

    def _transport(self, host: str) -> httpx.AsyncHTTPTransport:
        if self._context is None:
            self._context = ssl.create_default_context()
        if host not in self._transports:
            self._transports[host] = httpx.AsyncHTTPTransport(verify=self._context, trust_env=False)
        return self._transports[host]


def _with_address(address: Address, request: httpx.Request, host: str) -> httpx.Request:
    timeout = {**request.extensions.get("timeout", {}), "connect": CONNECT_SECONDS}
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "timeout": timeout, "sni_hostname": host},
    )
