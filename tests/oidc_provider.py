"""A strict OpenID Connect provider over HTTP: sign-in with authorization code and PKCE, device flow, refresh tokens
that rotate, revocation and logout. It refuses what the specifications let a provider refuse.

Pages have one form each, so a browser and a test with an HTTP client can use them alike.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.oauth_issuer import Key, TestIssuer, issuing

PAGE, TERMINAL = "web-page", "terminal"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
CODE_SECONDS, ACCESS_SECONDS = 60, 300


@dataclass
class Client:
    secret: str | None = None
    redirect_uris: set[str] = field(default_factory=set)
    post_logout_uris: set[str] = field(default_factory=set)
    grants: frozenset[str] = frozenset({"authorization_code", "refresh_token"})


@dataclass
class Code:
    client: str
    redirect_uri: str
    challenge: str
    nonce: str
    scope: str
    expires: float


@dataclass
class Device:
    client: str
    user_code: str
    scope: str
    expires: float
    audience: str | None
    polled: float = float("-inf")
    interval: float = 1
    decision: bool | None = None


@dataclass
class Refresh:
    client: str
    family: str
    scope: str
    audience: str | None


class OAuthError(Exception):
    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(code)
        self.code, self.status = code, status


@dataclass
class TestProvider(TestIssuer):
    person: dict[str, Any] = field(
        default_factory=lambda: {"sub": "ada-1815", "name": "Ada Lovelace", "groups": ["sre", "ops"]}
    )
    """The claims of the person who signs in."""
    clients: dict[str, Client] = field(
        default_factory=lambda: {
            PAGE: Client(),
            TERMINAL: Client(grants=frozenset({DEVICE_GRANT, "refresh_token"})),
        }
    )
    audience: str = "platform"
    """Of access tokens."""
    interval: float = 1
    device_seconds: float = 300
    userinfo_only: frozenset[str] = frozenset()
    """Claims that are not in the ID token."""
    alter: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
    """Changes the claims of an ID token, for tests of wrong ones."""
    signer: Key | None = None
    """The key of ID tokens, if it is not the newest."""
    clock: Callable[[], float] = time.time
    codes: dict[str, Code] = field(default_factory=dict)
    devices: dict[str, Device] = field(default_factory=dict)
    refreshes: dict[str, Refresh] = field(default_factory=dict)
    spent: dict[str, str] = field(default_factory=dict)
    """Refresh tokens that were exchanged, and their families."""
    logouts: list[dict[str, str]] = field(default_factory=list)

    def metadata(self) -> dict[str, Any]:
        return super().metadata() | {
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "device_authorization_endpoint": f"{self.url}/device_authorization",
            "revocation_endpoint": f"{self.url}/revoke",
            "end_session_endpoint": f"{self.url}/logout",
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def routes(self) -> list[Route]:
        return [
            Route("/authorize", self._authorize, methods=["GET", "POST"]),
            Route("/device_authorization", self._begin_device, methods=["POST"]),
            Route("/device", self._decide_device, methods=["GET", "POST"]),
            Route("/userinfo", self._userinfo, methods=["GET"]),
            Route("/revoke", self._revoke, methods=["POST"]),
            Route("/logout", self._logout, methods=["GET"]),
        ]

    def access_token(self, audience: str | None = None) -> str:
        claims = {**self.person, "aud": audience or self.audience, "exp": int(self.clock()) + ACCESS_SECONDS}
        return self.token(None, "at+jwt", jti=secrets.token_hex(4), **claims)

    def grant(self, request: Request, form: dict[str, str]) -> Response | None:
        grants = {
            "authorization_code": self._code_grant,
            "refresh_token": self._refresh_grant,
            DEVICE_GRANT: self._device_grant,
        }
        if form.get("grant_type") not in grants:
            return None
        try:
            client = self._authenticated(request, form)
            if form["grant_type"] not in self.clients[client].grants:
                raise OAuthError("unauthorized_client")
            return JSONResponse(grants[form["grant_type"]](client, form), headers={"Cache-Control": "no-store"})
        except OAuthError as error:
            return JSONResponse({"error": error.code}, status_code=error.status)

    def _authenticated(self, request: Request, form: dict[str, str]) -> str:
        name, secret = self.sent_client(request, form) if "authorization" in request.headers else ("", "")
        name = name or form.get("client_id", "")
        client = self.clients.get(name)
        if client is None or (client.secret or "") != secret or form.get("client_id", name) != name:
            raise OAuthError("invalid_client", 401)
        return name

    async def _authorize(self, request: Request) -> Response:
        sent = dict(request.query_params)
        client = self.clients.get(sent.get("client_id", ""))
        if client is None or sent.get("redirect_uri") not in client.redirect_uris:
            # A redirect to an address that is not registered would hand the code to a stranger.
            return HTMLResponse("The client or its redirect URI is not registered.", status_code=400)
        answer = {"state": sent.get("state", ""), "iss": self.name}
        if (problem := _request_problem(sent)) is not None:
            return _redirect(sent["redirect_uri"], answer | {"error": problem})
        if request.method == "GET":
            return _form("Sign in to the platform", "Sign in as Ada", "Decline")
        if (await request.form()).get("decision") != "yes":
            return _redirect(sent["redirect_uri"], answer | {"error": "access_denied"})
        code = secrets.token_urlsafe(24)
        self.codes[code] = Code(
            client=sent["client_id"],
            redirect_uri=sent["redirect_uri"],
            challenge=sent["code_challenge"],
            nonce=sent["nonce"],
            scope=sent["scope"],
            expires=self.clock() + CODE_SECONDS,
        )
        return _redirect(sent["redirect_uri"], answer | {"code": code})

    def _code_grant(self, client: str, form: dict[str, str]) -> dict[str, Any]:
        code = self.codes.pop(form.get("code", ""), None)
        verifier = form.get("code_verifier", "")
        if (
            code is None
            or code.client != client
            or code.redirect_uri != form.get("redirect_uri")
            or self.clock() > code.expires
            or not re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", verifier)
            or code.challenge != _hashed(verifier.encode())
        ):
            raise OAuthError("invalid_grant")
        access = self.access_token()
        return self._tokens(client, code.scope, access) | {"id_token": self._id_token(client, code.nonce, access)}

    def _id_token(self, client: str, nonce: str, access: str) -> str:
        half = base64.urlsafe_b64encode(hashlib.sha256(access.encode()).digest()[:16]).rstrip(b"=").decode()
        person = {name: value for name, value in self.person.items() if name not in self.userinfo_only}
        claims = self.alter({**person, "aud": client, "nonce": nonce, "at_hash": half})
        return self.token(self.signer, **claims)

    def _tokens(self, client: str, scope: str, access: str, **refresh: Any) -> dict[str, Any]:
        issued = {"access_token": access, "token_type": "Bearer", "expires_in": ACCESS_SECONDS, "scope": scope}
        if "refresh_token" not in self.clients[client].grants:
            return issued
        token = secrets.token_urlsafe(24)
        family = refresh.get("family") or secrets.token_hex(8)
        self.refreshes[token] = Refresh(client, family, scope, refresh.get("audience"))
        return issued | {"refresh_token": token}

    def _refresh_grant(self, client: str, form: dict[str, str]) -> dict[str, Any]:
        sent = form.get("refresh_token", "")
        if sent in self.spent:
            # Used twice, so it was stolen: everything that was issued after it ends.
            self.refreshes = {
                token: other for token, other in self.refreshes.items() if other.family != self.spent[sent]
            }
            raise OAuthError("invalid_grant")
        known = self.refreshes.pop(sent, None)
        if known is None or known.client != client:
            raise OAuthError("invalid_grant")
        self.spent[sent] = known.family
        access = self.access_token(known.audience)
        return self._tokens(client, known.scope, access, family=known.family, audience=known.audience)

    async def _begin_device(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        try:
            client = self._authenticated(request, form)
            if DEVICE_GRANT not in self.clients[client].grants:
                raise OAuthError("unauthorized_client")
        except OAuthError as error:
            return JSONResponse({"error": error.code}, status_code=error.status)
        code = secrets.token_urlsafe(24)
        user_code = "-".join("".join(secrets.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(4)) for _ in range(2))
        expires = self.clock() + self.device_seconds
        self.devices[code] = Device(
            client, user_code, form.get("scope", ""), expires, form.get("audience"), interval=self.interval
        )
        complete = f"{self.url}/device?{urlencode({'user_code': user_code})}"
        return JSONResponse(
            {
                "device_code": code,
                "user_code": user_code,
                "verification_uri": f"{self.url}/device",
                "verification_uri_complete": complete,
                "expires_in": self.device_seconds,
                "interval": self.interval,
            }
        )

    async def _decide_device(self, request: Request) -> Response:
        wanted = request.query_params.get("user_code")
        device = next((each for each in self.devices.values() if each.user_code == wanted), None)
        if device is None or device.decision is not None:
            return HTMLResponse("No device waits with this code.", status_code=404)
        if request.method == "GET":
            return _form(f"Sign in the device {device.user_code}", "Sign in as Ada", "Decline")
        device.decision = (await request.form()).get("decision") == "yes"
        return HTMLResponse("You can close this page.")

    def _device_grant(self, client: str, form: dict[str, str]) -> dict[str, Any]:
        code = form.get("device_code", "")
        device = self.devices.get(code)
        if device is None or device.client != client:
            raise OAuthError("invalid_grant")
        since, device.polled = self.clock() - device.polled, self.clock()
        if self.clock() > device.expires:
            raise OAuthError("expired_token")
        if since < device.interval:
            device.interval += 5
            raise OAuthError("slow_down")
        if device.decision is None:
            raise OAuthError("authorization_pending")
        del self.devices[code]
        if not device.decision:
            raise OAuthError("access_denied")
        access = self.access_token(device.audience)
        return self._tokens(client, device.scope, access, audience=device.audience)

    async def _userinfo(self, request: Request) -> Response:
        self.calls["userinfo"] += 1
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return Response(status_code=401)
        return JSONResponse(self.person)

    async def _revoke(self, request: Request) -> Response:
        self.calls["revoke"] += 1
        form = {name: str(value) for name, value in (await request.form()).items()}
        try:
            self._authenticated(request, form)
        except OAuthError as error:
            return JSONResponse({"error": error.code}, status_code=error.status)
        self.refreshes.pop(form.get("token", ""), None)
        return Response()

    async def _logout(self, request: Request) -> Response:
        sent = dict(request.query_params)
        self.logouts.append(sent)
        client = self.clients.get(sent.get("client_id", ""))
        target = sent.get("post_logout_redirect_uri")
        if client is None or target not in client.post_logout_uris:
            return HTMLResponse("You are signed out.", status_code=400 if target else 200)
        return RedirectResponse(target, status_code=303)


def _request_problem(sent: dict[str, str]) -> str | None:
    """The error code of an authorization request that lacks one of its protections."""
    if sent.get("response_type") != "code":
        return "unsupported_response_type"
    if "openid" not in sent.get("scope", "").split():
        return "invalid_scope"
    is_hash = re.fullmatch(r"[A-Za-z0-9_-]{43}", sent.get("code_challenge", "")) is not None
    is_bound = all(len(sent.get(name, "")) >= 16 for name in ("state", "nonce"))
    is_protected = is_hash and is_bound and sent.get("code_challenge_method") == "S256"
    return None if is_protected else "invalid_request"


def _hashed(verifier: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=").decode()


def _redirect(address: str, parameters: dict[str, str]) -> Response:
    return RedirectResponse(f"{address}?{urlencode(parameters)}", status_code=303)


def _form(title: str, yes: str, no: str) -> Response:
    buttons = "".join(
        f'<button name="decision" value="{value}">{html.escape(text)}</button>'
        for value, text in (("yes", yes), ("no", no))
    )
    return HTMLResponse(
        f'<!doctype html><html lang="en"><title>{html.escape(title)}</title><link rel="icon" href="data:,">'
        f"<h1>{html.escape(title)}</h1><form method=post>{buttons}</form></html>"
    )


async def decide(http: httpx.AsyncClient, address: str, *, accept: bool = True) -> httpx.Response:
    """Answer the form at an address of the provider, as a person would."""
    shown = await http.get(address)
    assert shown.status_code == 200, shown.text
    return await http.post(address, data={"decision": "yes" if accept else "no"})


@asynccontextmanager
async def providing(provider: TestProvider | None = None, host: str = "127.0.0.1") -> AsyncIterator[TestProvider]:
    """With the host `localhost`, the provider is another site than a server at 127.0.0.1."""
    provider = provider or TestProvider()
    async with issuing(provider):
        provider.url = provider.url.replace("127.0.0.1", host)
        yield provider
