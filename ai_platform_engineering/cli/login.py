"""`platform-engineer login` and `logout`: a person signs in at a supervisor with OpenID Connect."""

from __future__ import annotations

import argparse
import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from ai_platform_engineering.cli.exit_codes import fail, refuse
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.fields import is_secure_address
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.oidc.device_flow import DeviceCode, request_code, wait_for_tokens
from ai_platform_engineering.utils.oidc.login_file import Login, LoginFile, supervisor_key
from ai_platform_engineering.utils.oidc.provider import Provider, ProviderError, fetch_metadata, provider_client
from ai_platform_engineering.utils.oidc.token_endpoint import Client, fields_of, post_form
from ai_platform_engineering.utils.redact import redact
from ai_platform_engineering.utils.supervisor_auth import login_of

_TIMEOUT: Final = httpx.Timeout(20, connect=5)


class LoginError(ReadableError):
    """The text is a sentence with the reason."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """How a supervisor lets a terminal sign in."""

    issuer: str
    client_id: str
    scopes: str
    audience: str | None


def run_login(options: argparse.Namespace, settings: Settings) -> int:
    url = options.url or settings.public_url
    if not is_secure_address(url):
        return refuse(f"{redact(url)} is not on this machine: an access token is sent over https only.")
    try:
        return asyncio.run(_login(url, LoginFile(settings.logins_file)))
    except ReadableError as error:
        return fail(error)


def run_logout(options: argparse.Namespace, settings: Settings) -> int:
    url = options.url or settings.public_url
    logins = LoginFile(settings.logins_file)
    with logins.locked():
        login = logins.remove(url)
    if login is None:
        print(f"There is no login at {redact(url)}.")
        return 0
    is_revoked = asyncio.run(_revoke(login))
    note = "" if is_revoked else " The provider could not be asked to end it as well; it ends there by itself."
    print(f"Signed out at {redact(url)}.{note}")
    return 0


async def _login(url: str, logins: LoginFile) -> int:
    offer = await _offer_of(url)
    if offer is None:
        print(f"The supervisor at {redact(url)} requires no sign-in.")
        return 0
    tls = httpx.create_ssl_context()
    provider = await _provider(offer.issuer, tls)
    client = Client(offer.client_id)
    request = {"scope": offer.scopes, **({"audience": offer.audience} if offer.audience else {})}
    try:
        code = await request_code(provider, client, request, tls)
    except ProviderError as error:
        raise LoginError(f"{one_line(offer.issuer)} cannot be used: {error}.") from None
    _show(code)
    tokens = await wait_for_tokens(provider, client, code, tls)
    login = login_of(supervisor_key(url), provider.issuer, offer.client_id, tokens, time.time())
    subject = await _accepted_subject(url, login)
    with logins.locked():
        logins.save(login)
    print(f"Signed in at {redact(url)} as {one_line(subject)}.")
    if login.refresh_token is None:
        print("The provider sent no refresh token, so the login ends with its access token.")
    return 0


async def _offer_of(url: str) -> _Offer | None:
    """How the supervisor lets a terminal sign in; None if it requires no sign-in."""
    match await _session_of(url):
        case {"required": False}:
            return None
        case {"terminal": {"issuer": str(issuer), "client_id": str(client_id), "scopes": str(scopes), **more}}:
            if not is_secure_address(issuer):
                raise LoginError(f"The supervisor at {redact(url)} names a provider without https: {one_line(issuer)}.")
            audience = more.get("audience")
            return _Offer(issuer, client_id, scopes, audience if isinstance(audience, str) else None)
        case {"required": True}:
            raise LoginError(
                f"The supervisor at {redact(url)} has no sign-in for the terminal. Its operator can set "
                "OIDC_DEVICE_CLIENT_ID; with a key, set A2A_AUTH_SHARED_KEY instead."
            )
        case _:
            raise LoginError(f"{redact(url)} does not answer like a supervisor. Check the address.")


async def _session_of(url: str, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT) as http:
            return fields_of(await http.get(f"{url.rstrip('/')}/session", headers=headers))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise LoginError(
            f"There is no supervisor at {redact(url)} ({reason_of(error)}). Give its address with --url."
        ) from None


async def _provider(issuer: str, tls: ssl.SSLContext) -> Provider:
    try:
        async with provider_client(tls) as http:
            return await fetch_metadata(http, issuer)
    except ProviderError as error:
        raise LoginError(f"The OpenID Connect provider {one_line(issuer)} cannot be used: {error}.") from None


def _show(code: DeviceCode) -> None:
    print(f"Open {one_line(code.uri)} in a browser and enter the code {one_line(code.user_code)}.", flush=True)
    if code.complete_uri is not None:
        print(f"This address contains the code: {one_line(code.complete_uri)}", flush=True)


async def _accepted_subject(url: str, login: Login) -> str:
    """The subject under which the supervisor knows the person."""
    match await _session_of(url, {"Authorization": f"Bearer {login.access_token}"}):
        case {"signed_in": True, "subject": str(subject)}:
            return subject
        case _:
            raise LoginError(
                f"The supervisor at {redact(url)} does not accept the access token of {one_line(login.issuer)}. Its "
                "operator compares A2A_OAUTH_ISSUER and A2A_OAUTH_AUDIENCE with the token's iss and aud."
            )


async def _revoke(login: Login) -> bool:
    """Whether the provider has ended the login."""
    try:
        async with provider_client(httpx.create_ssl_context()) as http:
            provider = await fetch_metadata(http, login.issuer)
            if provider.revocation_endpoint is None:
                return False
            hint = "refresh_token" if login.refresh_token else "access_token"
            form = {"token": login.refresh_token or login.access_token, "token_type_hint": hint}
            response = await post_form(http, provider.revocation_endpoint, provider, Client(login.client_id), form)
            return response.is_success
    except ProviderError:
        return False
