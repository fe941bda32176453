"""The metadata of an OpenID Connect provider or OAuth2 issuer (discovery), read over HTTP and validated."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx

from ai_platform_engineering.settings.fields import is_secure_address
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

_SECONDS: Final = 5.0
_MAX_RESPONSE_SIZE: Final = 1_000_000
_DEFAULT_METHODS: Final = frozenset({"client_secret_basic"})


class ProviderError(Exception):
    """The provider cannot be used; the text is the reason, as part of a sentence."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider publishes about itself. An endpoint that it does not have is None."""

    issuer: str
    jwks_uri: str | None = None
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    userinfo_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    end_session_endpoint: str | None = None
    revocation_endpoint: str | None = None
    auth_methods: frozenset[str] = _DEFAULT_METHODS
    sends_issuer: bool = False
    """Whether its authorization responses name the issuer (RFC 9207)."""


_ENDPOINTS: Final = (
    "jwks_uri",
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "device_authorization_endpoint",
    "end_session_endpoint",
    "revocation_endpoint",
)


def metadata_addresses(issuer: str) -> list[str]:
    """The addresses of an issuer's metadata: OpenID Connect appends a path, OAuth2 inserts one before the issuer's."""
    parts = urlsplit(issuer.rstrip("/"))
    own = f"{urlunsplit(parts)}/.well-known"
    before = urlunsplit(parts._replace(path=f"/.well-known/oauth-authorization-server{parts.path}"))
    return list(dict.fromkeys([f"{own}/openid-configuration", before, f"{own}/oauth-authorization-server"]))


def read_metadata(document: Mapping[str, Any], issuer: str) -> Provider:
    """The provider that `document` describes. It must be `issuer`; only a slash at the end may differ."""
    named = document.get("issuer")
    if not isinstance(named, str) or named.rstrip("/") != issuer.rstrip("/"):
        raise ProviderError(f"its metadata are those of another issuer, {named!r:.200}")
    endpoints = {name: document[name] for name in _ENDPOINTS if document.get(name) is not None}
    for name, address in endpoints.items():
        if not isinstance(address, str) or not is_secure_address(address):
            raise ProviderError(f"{name} in its metadata is not an https address")
    methods = document.get("token_endpoint_auth_methods_supported")
    stated = frozenset(filter(_is_text, methods)) if isinstance(methods, list) else _DEFAULT_METHODS
    sends_issuer = document.get("authorization_response_iss_parameter_supported") is True
    return Provider(named, auth_methods=stated, sends_issuer=sends_issuer, **endpoints)


async def fetch_metadata(http: httpx.AsyncClient, issuer: str) -> Provider:
    for address in metadata_addresses(issuer):
        document = await get_json(http, address)
        if isinstance(document, dict) and "issuer" in document:
            return read_metadata(document, issuer)
    raise ProviderError("it publishes no metadata")


@asynccontextmanager
async def provider_client(tls: ssl.SSLContext) -> AsyncIterator[httpx.AsyncClient]:
    """A client for the requests to a provider: they take seconds at most, and failures become `ProviderError`."""
    try:
        transport = CheckedTransport(OPERATOR, tls=lambda: tls)
        async with asyncio.timeout(_SECONDS), httpx.AsyncClient(transport=transport, timeout=_SECONDS) as http:
            yield http
    except TimeoutError:
        raise ProviderError(f"no answer within {_SECONDS:g} s") from None
    except httpx.HTTPStatusError as error:
        raise ProviderError(f"HTTP {error.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProviderError(reason_of(error)) from error


async def get_json(http: httpx.AsyncClient, address: str, headers: Mapping[str, str] | None = None) -> object:
    """The JSON at an address; None if there is none."""
    async with http.stream("GET", address, headers={"Accept": "application/json", **(headers or {})}) as response:
        if response.is_client_error:
            return None
        response.raise_for_status()
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_RESPONSE_SIZE:
                raise ProviderError("the response is too long")
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content


def _is_text(value: object) -> bool:
    return isinstance(value, str)
