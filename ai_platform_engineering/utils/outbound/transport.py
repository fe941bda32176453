"""The HTTP transport: it contacts only the hosts and addresses that a policy allows.

Each connection goes to an address that was checked, so a second DNS lookup cannot lead elsewhere (DNS rebinding). The
Host header and the check of the certificate use the name. A proxy resolves names itself, so only its own rules can
refuse the addresses of names; the policy refuses the names and addresses in URLs there, too.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from ai_platform_engineering.utils.outbound.addresses import Resolve, resolve
from ai_platform_engineering.utils.outbound.policy import OutboundPolicy, Scheme

_DEFAULT_LIMITS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=20)

Key = tuple[Scheme, str | None]
"""The scheme of a request, and the proxy that it goes through."""


class CheckedTransport(httpx.AsyncBaseTransport):
    """Raises `RefusedError` for a request that the policy does not allow. `tls` gives the trusted certificates; it is
    called for the first https request, because loading them blocks the event loop for some time."""

    def __init__(
        self,
        policy: OutboundPolicy,
        resolve: Resolve = resolve,
        *,
        tls: Callable[[], ssl.SSLContext] = httpx.create_ssl_context,
        limits: httpx.Limits = _DEFAULT_LIMITS,
    ) -> None:
        self._policy = policy
        self._resolve = resolve
        self._tls = tls
        self._limits = limits
        self._transports: dict[Key, httpx.AsyncHTTPTransport] = {}
        # The hosts that an operator configures are few, so that each is checked once.
        self._known: dict[tuple[str, bytes, int | None], httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        origin = url.scheme, url.raw_host, url.port
        transport = self._known.get(origin) or self._transport(url)
        if self._policy.is_operators:
            self._known[origin] = transport
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    def _transport(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        self._policy.check_url(url)
        scheme: Scheme = "https" if url.scheme == "https" else "http"
        key = (scheme, proxy_for(str(url)) if self._policy.is_operators else None)
        if key not in self._transports:
            self._transports[key] = self._new_transport(*key)
        return self._transports[key]

    def _new_transport(self, scheme: Scheme, proxy: str | None) -> httpx.AsyncHTTPTransport:
        from ai_platform_engineering.compat.httpx_backend import connect_with  # noqa: PLC0415
        from ai_platform_engineering.utils.outbound.backends import CheckedBackend  # noqa: PLC0415

        verify = trusted(scheme, self._tls)
        transport = httpx.AsyncHTTPTransport(verify=verify, trust_env=False, limits=self._limits, proxy=proxy)
        if proxy is None:
            connect_with(transport, CheckedBackend(self._policy, scheme, self._resolve))
        return transport


def blocking_transport(policy: OutboundPolicy, url: str) -> httpx.HTTPTransport:
    """A transport for one URL, for code that blocks a thread. Raises `RefusedError`."""
    from ai_platform_engineering.compat.httpx_backend import connect_blocking_with  # noqa: PLC0415
    from ai_platform_engineering.utils.outbound.backends import BlockingBackend  # noqa: PLC0415

    policy.check_url(httpx.URL(url))
    scheme: Scheme = "https" if urlsplit(url).scheme == "https" else "http"
    proxy = proxy_for(url) if policy.is_operators else None
    transport = httpx.HTTPTransport(verify=trusted(scheme, httpx.create_ssl_context), trust_env=False, proxy=proxy)
    if proxy is None:
        connect_blocking_with(transport, BlockingBackend(policy, scheme))
    return transport


def trusted(scheme: Scheme, tls: Callable[[], ssl.SSLContext]) -> ssl.SSLContext | Literal[False]:
    """The certificates to verify with. Plain HTTP needs none, and loading them takes long."""
    return tls() if scheme == "https" else False


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for `url`."""
    address, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.netloc.rpartition("@")[-1]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
