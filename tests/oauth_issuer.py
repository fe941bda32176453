"""A small OAuth2 issuer over HTTP: real keys that rotate, metadata, and a strict token endpoint for clients.

Tokens are made with joserfc, not with the library that the product checks them with.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
import warnings
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote_plus

from joserfc import jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.utils.a2a_common.serving import listening

Key = RSAKey | ECKey | OKPKey

OPENID, OAUTH = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"
CLIENT, SECRET = "slack bot", "s3cret: +&%"


def new_key(kind: Literal["RSA", "EC", "OKP"] = "EC", key_id: str | None = None, **more: Any) -> Key:
    parameters: dict[str, Any] = {**({"kid": key_id} if key_id else {}), **more}
    if kind == "RSA":
        return RSAKey.generate_key(2048, parameters)
    if kind == "EC":
        return ECKey.generate_key("P-256", parameters)
    return OKPKey.generate_key("Ed25519", parameters)


def forged(header: dict[str, Any], claims: dict[str, Any], secret: bytes = b"") -> str:
    """A token as nobody should make one: without a signature, or signed with something that is no secret."""
    written = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims))
    signature = hmac.digest(secret, written, "sha256") if secret else b""
    return f"{written.decode()}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def algorithm_of(key: Key) -> str:
    return {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}[key.key_type]


@dataclass
class TestIssuer:
    __test__ = False

    url: str = ""
    path: str = ""
    """Follows the address in the issuer's name."""
    keys: list[Key] = field(default_factory=lambda: [new_key(key_id="k1")])
    unfit: list[dict[str, Any]] = field(default_factory=list)
    """What is published among the keys besides."""
    metadata_at: str = OPENID
    down: bool = False
    secret_in: Literal["header", "body"] = "header"
    client: str = CLIENT
    secret: str = SECRET
    expires_in: object = 3600
    services: frozenset[str] = frozenset()
    """The audiences for which tokens of users are exchanged."""
    calls: Counter[str] = field(default_factory=Counter)
    forms: list[dict[str, str]] = field(default_factory=list)

    def claims(self, **claims: Any) -> dict[str, Any]:
        """What a token says; a claim that is None is left out."""
        now = int(time.time())
        said = {"iss": self.name, "sub": "client", "iat": now, "exp": now + 3600} | claims
        return {name: value for name, value in said.items() if value is not None}

    @property
    def name(self) -> str:
        return f"{self.url}{self.path}"

    def metadata(self) -> dict[str, Any]:
        return {"issuer": self.name, "jwks_uri": f"{self.url}/keys"}

    def token(self, key: Key | None = None, typ: str | None = None, **claims: Any) -> str:
        """`typ` is the type in the header."""
        signer = key or self.keys[-1]
        head = {"alg": algorithm_of(signer)} | ({"kid": signer.kid} if signer.kid else {})
        head |= {"typ": typ} if typ else {}
        with warnings.catch_warnings():
            # It warns of what others still use.
            warnings.simplefilter("ignore", SecurityWarning)
            return jwt.encode(head, self.claims(**claims), signer, algorithms=[head["alg"]])

    def app(self) -> Starlette:
        async def metadata(request: Request) -> Response:
            self.calls["metadata"] += 1
            if self.down:
                return Response(status_code=503)
            if request.url.path != self.metadata_at:
                return Response(status_code=404)
            return JSONResponse(self.metadata())

        async def keys(_request: Request) -> Response:
            self.calls["keys"] += 1
            if self.down:
                return Response(status_code=503)
            return JSONResponse({"keys": [*self.unfit, *(key.as_dict(private=False) for key in self.keys)]})

        async def token(request: Request) -> Response:
            self.calls["token"] += 1
            if self.down:
                return Response(status_code=503)
            form = {name: str(value) for name, value in (await request.form()).items()}
            self.forms.append(form)
            if (granted := self.grant(request, form)) is not None:
                return granted
            if self.sent_client(request, form) != (self.client, self.secret):
                return JSONResponse({"error": "invalid_client"}, status_code=401)
            return self.exchange(form) if form.get("grant_type") == TOKEN_EXCHANGE else self.own_token(form)

        return Starlette(
            routes=[
                *self.routes(),
                Route("/keys", keys),
                Route("/token", token, methods=["POST"]),
                Route("/{rest:path}", metadata),
            ]
        )

    def routes(self) -> list[Route]:
        """Further routes."""
        return []

    def grant(self, request: Request, form: dict[str, str]) -> Response | None:
        """The response to a grant that is not for clients; None if it is for one."""
        return None

    def own_token(self, form: dict[str, str]) -> Response:
        """A token of the client itself."""
        if form.get("grant_type") != "client_credentials":
            return JSONResponse({"error": "unsupported_grant_type"}, status_code=400)
        if form.get("scope") == "everything":
            return JSONResponse({"error": "invalid_scope", "error_description": SECRET}, status_code=400)
        made = self.token(aud=form.get("audience"), jti=str(self.calls["token"]))
        return JSONResponse({"access_token": made, "token_type": "Bearer", "expires_in": self.expires_in})

    def exchange(self, form: dict[str, str]) -> Response:
        """RFC 8693: a token of the same user for a service."""
        if {form.get("subject_token_type"), form.get("requested_token_type", ACCESS_TOKEN_TYPE)} != {ACCESS_TOKEN_TYPE}:
            return JSONResponse({"error": "invalid_request"}, status_code=400)
        if form.get("audience") not in self.services:
            return JSONResponse({"error": "invalid_target"}, status_code=400)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SecurityWarning)
                subject = jwt.decode(form["subject_token"], self.keys[-1], algorithms=[algorithm_of(self.keys[-1])])
        except (KeyError, ValueError, JoseError):
            return JSONResponse({"error": "invalid_request"}, status_code=400)
        made = self.token(aud=form["audience"], sub=subject.claims["sub"], act={"sub": self.client})
        body = {"access_token": made, "issued_token_type": ACCESS_TOKEN_TYPE, "token_type": "Bearer"}
        return JSONResponse(body | {"expires_in": self.expires_in})

    def sent_client(self, request: Request, form: dict[str, str]) -> tuple[str, str]:
        if self.secret_in == "body":
            return form.get("client_id", ""), form.get("client_secret", "")
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        name, _, secret = base64.b64decode(sent).decode().partition(":") if scheme == "Basic" else ("", "", "")
        return unquote_plus(name), unquote_plus(secret)


@asynccontextmanager
async def issuing(issuer: TestIssuer | None = None) -> AsyncIterator[TestIssuer]:
    issuer = issuer or TestIssuer()
    async with listening(issuer.app()) as url:
        issuer.url = url
        yield issuer
