"""Requests to the token endpoint of a provider: a grant is exchanged for tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

import httpx

from ai_platform_engineering.utils.oidc.provider import Provider, ProviderError


@dataclass(frozen=True, slots=True)
class Client:
    """A client that is registered at a provider. Without a secret it is a public one."""

    id: str
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tokens:
    """`expires_in` is in seconds; None if the provider does not say."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    id_token: str | None = field(default=None, repr=False)
    expires_in: float | None = None


class GrantError(Exception):
    """The provider refused a grant. `code` is its error code; empty if it sent none."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(code or f"HTTP {status}")
        self.code = code


async def request_tokens(
    http: httpx.AsyncClient, provider: Provider, client: Client, grant: Mapping[str, str]
) -> Tokens:
    """Exchange `grant`. Raises `GrantError` if it is refused, and `ProviderError` if the provider cannot be used."""
    if provider.token_endpoint is None:
        raise ProviderError("its metadata have no token_endpoint")
    response = await post_form(http, provider.token_endpoint, provider, client, grant)
    match fields_of(response):
        case {"access_token": str(access), **more} if response.is_success and access:
            return Tokens(access, _text(more, "refresh_token"), _text(more, "id_token"), _seconds(more))
        case _ if response.is_client_error:
            raise GrantError(error_code(response), response.status_code)
        case _:
            response.raise_for_status()
            raise ProviderError("its response contains no access token")


async def post_form(
    http: httpx.AsyncClient, url: str, provider: Provider, client: Client, form: Mapping[str, str]
) -> httpx.Response:
    """Post a form with the authentication of the client."""
    headers = {"Accept": "application/json"}
    if client.secret is not None and "client_secret_basic" in provider.auth_methods:
        return await http.post(url, data=dict(form), headers=headers, auth=basic_auth(client.id, client.secret))
    secret = {} if client.secret is None else {"client_secret": client.secret}
    return await http.post(url, data={**form, "client_id": client.id, **secret}, headers=headers)


def basic_auth(client_id: str, secret: str) -> httpx.BasicAuth:
    """RFC 6749 requires both to be form-encoded in the header."""
    return httpx.BasicAuth(quote_plus(client_id), quote_plus(secret))


def error_code(response: httpx.Response) -> str:
    """The standard error code of a response. Any other text is dropped, because it may contain secrets."""
    code = fields_of(response).get("error") if response.is_client_error else None
    return code if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,40}", code) else ""


def fields_of(response: httpx.Response) -> Mapping[str, Any]:
    """The JSON object of a response; empty if it has none."""
    try:
        body = response.json()
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    found = fields.get(name)
    return found if isinstance(found, str) and found else None


def _seconds(fields: Mapping[str, Any]) -> float | None:
    found = fields.get("expires_in")
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None
