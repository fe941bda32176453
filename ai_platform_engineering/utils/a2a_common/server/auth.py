"""Authentication of callers with the shared key or an access token of the OAuth2 issuer, if these are configured.

Browsers that have signed in send the cookie of their session instead. Health checks, the agent card and
the files of the web page need no authentication, nor do the metrics with `METRICS_PUBLIC`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from a2a.types.a2a_pb2 import HTTPAuthSecurityScheme, OpenIdConnectSecurityScheme, SecurityScheme
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ai_platform_engineering.audit.access import AccessAudit
from ai_platform_engineering.identity.principal import CALLER, KEY_HOLDER, Principal
from ai_platform_engineering.policy.decisions import Policy
from ai_platform_engineering.policy.loading import load_policy
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.named_keys import NamedKey
from ai_platform_engineering.settings.sign_in_settings import ANY_AUDIENCE
from ai_platform_engineering.utils.keys import SHARED_KEY, Place, required_key, sent_key, supervisor_keys
from ai_platform_engineering.utils.oidc.provider import metadata_addresses

if TYPE_CHECKING:
    from ai_platform_engineering.utils.a2a_common.server.browser_sessions import BrowserSession, BrowserSessions
    from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer

CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
METRICS_PATH: Final = "/metrics"
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", *CARD_PATHS})
SESSION_PATH: Final = "/session"
START_PATH: Final = f"{SESSION_PATH}/start"
CALLBACK_PATH: Final = f"{SESSION_PATH}/callback"
CSRF_HEADER: Final = "X-CSRF-Token"
_RETRY_SECONDS: Final = "5"
_UNAUTHORIZED: Final = 401
_CSRF_DENIAL: Final = "the token of the session is missing or wrong"
_READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_SESSION: Final = "browser_session"
"""The key of the session in the state of an ASGI scope."""


def auth_middleware(
    settings: Settings, place: Place = "front", agent: str | None = None, access: AccessAudit | None = None
) -> list[Middleware]:
    """The app's middleware for authentication; empty if neither key nor issuer is configured. `agent` is the name of
    the agent that the app serves."""
    keys, issuer = _keys(settings, place, agent), _issuer(settings)
    if not keys.keys and issuer is None:
        return []
    open_paths = OPEN_PATHS | {METRICS_PATH} if settings.metrics_public else OPEN_PATHS
    is_front = place == "front"
    return [
        Middleware(
            BearerAuth,
            keys=keys,
            issuer=issuer,
            open_paths=open_paths,
            optional_paths={SESSION_PATH, START_PATH, CALLBACK_PATH} if is_front else (),
            sessions=browser_sessions(settings) if is_front else None,
            access=access,
            policy=load_policy(settings),
        )
    ]


def browser_sessions(settings: Settings) -> BrowserSessions | None:
    """The sessions of the supervisor's web page; None if a browser can sign in neither with a key nor at a provider."""
    if not supervisor_keys(settings) and not signs_in_at_provider(settings):
        return None
    # Imported on demand: cryptography is slow to load.
    from ai_platform_engineering.utils.a2a_common.server.browser_sessions import (  # noqa: PLC0415
        BrowserSessions,
        session_secret,
    )

    return BrowserSessions(
        session_secret(settings),
        secure=has_secure_url(settings),
        holders={key.value: key_holder(key) for key in supervisor_keys(settings)},
        lifetime=settings.session_hours * 3600,
    )


def signs_in_at_provider(settings: Settings) -> bool:
    """Whether people can sign in with OpenID Connect at the page."""
    return settings.a2a_oauth_issuer is not None and settings.oidc_client_id is not None


def has_secure_url(settings: Settings) -> bool:
    """Whether browsers use the page over TLS."""
    return urlsplit(settings.public_url).scheme == "https"


def session_in(request: HTTPConnection) -> BrowserSession | None:
    """The session whose cookie has authenticated the request."""
    session: BrowserSession | None = request.scope.get("state", {}).get(_SESSION)
    return session


def csrf_problem(request: HTTPConnection, session: BrowserSession | None) -> Response | None:
    """The error response to a changing request that has the cookie of a session, but not its token."""
    if session is None or session.accepts(request.headers.get(CSRF_HEADER, "")):
        return None
    message = (
        f"The header {CSRF_HEADER} must have the token of the session. Read it with GET {SESSION_PATH}, csrf_token."
    )
    return JSONResponse({"error": "csrf", "message": message}, status_code=403)


def security_schemes(settings: Settings, place: Place = "front", agent: str | None = None) -> dict[str, SecurityScheme]:
    """The security schemes for the agent card. One of them is enough."""
    schemes = {}
    if _keys(settings, place, agent).keys:
        key = HTTPAuthSecurityScheme(scheme="bearer", description="The key that the server's operator gave out.")
        schemes["key"] = SecurityScheme(http_auth_security_scheme=key)
    if settings.a2a_oauth_issuer is not None:
        audience = settings.a2a_oauth_audience
        made_for = f", made for {audience}" if audience and audience != ANY_AUDIENCE else ""
        token = HTTPAuthSecurityScheme(
            scheme="bearer",
            bearer_format="JWT",
            description=f"An OAuth2 access token of {settings.a2a_oauth_issuer}{made_for}.",
        )
        schemes["access_token"] = SecurityScheme(http_auth_security_scheme=token)
        discovery = OpenIdConnectSecurityScheme(
            open_id_connect_url=metadata_addresses(settings.a2a_oauth_issuer)[0],
            description=f"Sign-in at {settings.a2a_oauth_issuer}. Its access token is the bearer{made_for}.",
        )
        schemes["openid"] = SecurityScheme(open_id_connect_security_scheme=discovery)
    return schemes


class ServerKeys(NamedTuple):
    """The keys that a server accepts, and the setting that has them, for the error message."""

    keys: tuple[NamedKey, ...] = ()
    setting: str = ""


class BearerAuth:
    """Accepts requests whose `Authorization: Bearer` is the key or a valid access token, and those of `sessions`.

    Accepted requests have the verified caller in `scope["state"]`. On `optional_paths` the others are accepted too.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: ServerKeys | None = None,
        issuer: Issuer | None = None,
        open_paths: Container[str] = OPEN_PATHS,
        optional_paths: Container[str] = (),
        sessions: BrowserSessions | None = None,
        access: AccessAudit | None = None,
        policy: Policy | None = None,
    ) -> None:
        self._app = app
        self._policy = policy or Policy()
        self._access = access or AccessAudit()
        self._open_paths = open_paths
        self._optional_paths = optional_paths
        self._keys = keys or ServerKeys()
        self._issuer = issuer
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in self._open_paths or _is_public(scope):
            await self._app(scope, receive, send)
            return
        is_optional = scope["path"] in self._optional_paths
        request = HTTPConnection(scope)
        session = self._session(request)
        found = session.caller if session is not None else await self._verified(_bearer(request.headers), scope)
        if session is not None and scope["method"] not in _READ_METHODS and not is_optional:
            found = csrf_problem(request, session) or found
            if isinstance(found, Response):
                self._access.denied(session.caller, _CSRF_DENIAL, address=_address(scope))
        if isinstance(found, Principal) or is_optional:
            verified: dict[str, Any] = {}
            if isinstance(found, Principal):
                verified = {CALLER: self._policy.with_groups(found), _SESSION: session}
            await self._app({**scope, "state": {**scope.get("state", {}), **verified}}, receive, send)
        elif scope["type"] == "http":
            await found(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _session(self, request: HTTPConnection) -> BrowserSession | None:
        """The session of the request. An Authorization header takes precedence."""
        if self._sessions is None or request.scope["type"] != "http" or "authorization" in request.headers:
            return None
        return self._sessions.read(request.cookies)

    async def _verified(self, sent: str, scope: Scope) -> Principal | Response:
        """The caller of the key or token, or the error response. Both are recorded."""
        found = await self._check(sent)
        if isinstance(found, Principal):
            self._access.used(found, _address(scope))
        elif sent and found.status_code == _UNAUTHORIZED:
            self._access.refused(_address(scope), "the key or token is not valid")
        return found

    async def _check(self, sent: str) -> Principal | Response:
        if (key := sent_key(self._keys.keys, sent)) is not None:
            return key_holder(key)
        if self._issuer is None or not sent:
            return self._unauthorized()
        # Imported on demand, as in `_issuer`.
        from ai_platform_engineering.utils.a2a_common.server.issuer import IssuerError  # noqa: PLC0415
        from ai_platform_engineering.utils.a2a_common.server.token_checks import TokenRefusedError  # noqa: PLC0415

        try:
            return await self._issuer.principal(sent)
        except TokenRefusedError as error:
            return self._unauthorized(str(error))
        except IssuerError as error:
            body = {"error": "unavailable", "message": str(error)}
            return JSONResponse(body, status_code=503, headers={"Retry-After": _RETRY_SECONDS})

    def _unauthorized(self, why: str = "") -> Response:
        wanted = [f"<{self._keys.setting}>"] if self._keys.keys else []
        if self._issuer is not None:
            wanted.append(f"<access token of {self._issuer.issuer}>")
        message = f"{why} Send the header Authorization: Bearer {' or '.join(wanted)}.".lstrip()
        challenge = 'Bearer error="invalid_token"' if why else "Bearer"
        return JSONResponse(
            {"error": "unauthorized", "message": message},
            status_code=_UNAUTHORIZED,
            headers={"WWW-Authenticate": challenge},
        )


def key_holder(key: NamedKey) -> Principal:
    """The principal who sends this key."""
    return KEY_HOLDER if key.name == SHARED_KEY else Principal.with_key(key.name, key.role)


def _keys(settings: Settings, place: Place, agent: str | None) -> ServerKeys:
    """The keys that the server accepts. One behind the supervisor has a single one, which the supervisor sends."""
    if place == "front":
        is_shared = settings.a2a_auth_shared_key is not None
        return ServerKeys(supervisor_keys(settings), "A2A_AUTH_SHARED_KEY" if is_shared else "one of A2A_AUTH_KEYS")
    key = required_key(settings, agent)
    return ServerKeys() if key is None else ServerKeys((NamedKey(SHARED_KEY, "admin", key.value),), key.setting)


def _is_public(scope: Scope) -> bool:
    """Whether the request reads one of the app's `public_paths`."""
    if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"} or "app" not in scope:
        return False
    return scope["path"] in getattr(scope["app"].state, "public_paths", ())


def _issuer(settings: Settings) -> Issuer | None:
    if settings.a2a_oauth_issuer is None:
        return None
    # Imported on demand: cryptography is slow to load.
    from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer  # noqa: PLC0415

    return Issuer.of(settings)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _bearer(headers: Headers) -> str:
    scheme, _, sent = headers.get("authorization", "").partition(" ")
    return sent.strip() if scheme.lower() == "bearer" else ""
