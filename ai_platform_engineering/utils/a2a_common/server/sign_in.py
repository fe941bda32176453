"""The route `/session`: a browser asks whether it is signed in, signs in and signs out. A terminal asks how to."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from a2a.utils.errors import A2AError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.audit.access import AccessAudit
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal, caller_in
from ai_platform_engineering.policy.loading import load_policy
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.named_keys import NamedKey
from ai_platform_engineering.settings.sign_in_settings import ANY_AUDIENCE
from ai_platform_engineering.utils.a2a_common.server.auth import (
    SESSION_PATH,
    browser_sessions,
    csrf_problem,
    has_secure_url,
    key_holder,
    session_in,
    signs_in_at_provider,
)
from ai_platform_engineering.utils.a2a_common.server.request_body import PayloadTooLargeError, read_json
from ai_platform_engineering.utils.a2a_common.server.sign_in_attempts import SignInAttempts
from ai_platform_engineering.utils.keys import sent_key, supervisor_keys

if TYPE_CHECKING:
    from ai_platform_engineering.utils.a2a_common.server.browser_sessions import BrowserSession, BrowserSessions
    from ai_platform_engineering.utils.a2a_common.server.oidc_sign_in import OidcSignIn

logger = logging.getLogger(__name__)

_MAX_BODY_SIZE: Final = 16_384
_HEADERS: Final = {"Cache-Control": "no-store"}


class SignInError(Exception):
    """The sent fields cannot be used; the text is a sentence for the sender."""


class SignIn(Protocol):
    """Verifies the sign-in of a browser."""

    @property
    def method(self) -> Literal["key"]:
        """What the page asks for."""

    async def verify(self, sent: Mapping[str, Any]) -> Principal | None:
        """The caller who sent these fields; None if they are wrong. Raises `SignInError` if they cannot be used."""


class KeySignIn:
    """Sign-in with a key of the supervisor."""

    method: Final = "key"

    def __init__(self, keys: Sequence[NamedKey]) -> None:
        self._keys = keys

    async def verify(self, sent: Mapping[str, Any]) -> Principal | None:
        match sent:
            case {"key": str(key)}:
                found = sent_key(self._keys, key)
                return None if found is None else key_holder(found)
            case _:
                raise SignInError('Send a JSON object with the key: {"key": "..."}.')


class SessionRoutes:
    """The authentication middleware has put the caller and the session of a request into its state."""

    def __init__(self, settings: Settings, access: AccessAudit | None = None) -> None:
        self._access = access or AccessAudit()
        keys = supervisor_keys(settings)
        self._required = bool(keys) or settings.a2a_oauth_issuer is not None
        self._sign_in: SignIn | None = KeySignIn(keys) if keys else None
        self._sessions: BrowserSessions | None = browser_sessions(settings)
        self._oidc = self._provider_sign_in(settings)
        self._terminal = terminal_sign_in(settings)
        self._attempts = SignInAttempts()
        self._policy = load_policy(settings)

    def routes(self) -> list[Route]:
        return [
            Route(SESSION_PATH, self._get, methods=["GET"]),
            Route(SESSION_PATH, self._post, methods=["POST"]),
            Route(SESSION_PATH, self._delete, methods=["DELETE"]),
            *(self._oidc.routes() if self._oidc is not None else ()),
        ]

    def _provider_sign_in(self, settings: Settings) -> OidcSignIn | None:
        sessions = self._sessions
        if sessions is None or not signs_in_at_provider(settings):
            return None
        # Imported on demand: cryptography is slow to load.
        from ai_platform_engineering.utils.a2a_common.server.browser_sessions import session_secret  # noqa: PLC0415
        from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer  # noqa: PLC0415
        from ai_platform_engineering.utils.a2a_common.server.oidc_sign_in import OidcSignIn  # noqa: PLC0415
        from ai_platform_engineering.utils.a2a_common.server.sign_in_transactions import (  # noqa: PLC0415
            SignInTransactions,
        )

        def signed_in(response: Response, caller: Principal, name: str | None) -> None:
            sessions.write(sessions.begin(caller, name), response)

        issuer = Issuer.of(settings)
        transactions = SignInTransactions(session_secret(settings).encode(), secure=has_secure_url(settings))
        return None if issuer is None else OidcSignIn(issuer, settings, transactions, signed_in, self._access)

    async def _get(self, request: Request) -> Response:
        return self._facts(caller_in(request.scope.get("state")), session_in(request))

    async def _post(self, request: Request) -> Response:
        if self._sign_in is None or self._sessions is None:
            why = "browsers cannot sign in here" if self._required else "this server requires no sign-in"
            return _problem(404, "not_found", f"A session cannot be started: {why}.")
        try:
            sent = await read_json(request, _MAX_BODY_SIZE)
        except ClientDisconnect:
            return Response(status_code=400)
        except PayloadTooLargeError:
            return _problem(413, "payload_too_large", f"A sign-in may have at most {_MAX_BODY_SIZE} bytes.")
        except A2AError as error:
            return _problem(400, "invalid_request", error.message)
        return await self._signed_in(request, sent if isinstance(sent, dict) else {}, self._sign_in, self._sessions)

    async def _signed_in(
        self, request: Request, sent: Mapping[str, Any], sign_in: SignIn, sessions: BrowserSessions
    ) -> Response:
        address = request.client.host if request.client else ""
        pause = math.ceil(self._attempts.begin(address))
        if pause > 0:
            message = f"Too many sign-ins from this address have failed. Try again in {pause} s."
            return _problem(429, "too_many_attempts", message, {"Retry-After": str(pause)})
        try:
            caller = await sign_in.verify(sent)
        except SignInError as error:
            return _problem(400, "invalid_request", str(error))
        if caller is None:
            logger.warning("A sign-in from %s was refused: the key is not correct.", address)
            self._access.refused(address, "the key of a sign-in is not correct")
            return _problem(401, "unauthorized", "The key is not correct.")
        self._attempts.succeeded(address)
        self._access.signed_in(caller, address)
        session = sessions.begin(caller)
        response = self._facts(self._policy.with_groups(caller), session)
        sessions.write(session, response)
        return response

    async def _delete(self, request: Request) -> Response:
        session = session_in(request)
        if (problem := csrf_problem(request, session)) is not None:
            return problem
        logout_url = None
        if self._oidc is not None and session is not None and session.caller.verified_by == "token":
            logout_url = await self._oidc.logout_url(request)
        response = Response(status_code=204, headers=_HEADERS)
        if logout_url is not None:
            response = JSONResponse({"logout_url": logout_url}, headers=_HEADERS)
        if self._sessions is not None:
            self._sessions.delete(response)
        return response

    def _facts(self, caller: Principal, session: BrowserSession | None) -> Response:
        facts = {
            "required": self._required,
            "signed_in": caller != ANONYMOUS,
            "subject": caller.subject,
            "name": session.name if session is not None else None,
            "groups": sorted(caller.groups),
            "csrf_token": session.csrf_token if session is not None else None,
            "methods": [*(["openid"] if self._oidc else []), *([self._sign_in.method] if self._sign_in else [])],
            "terminal": self._terminal,
        }
        return JSONResponse(facts, headers=_HEADERS)


def terminal_sign_in(settings: Settings) -> dict[str, str | None] | None:
    """What `platform-engineer login` needs to sign a person in: nothing of it is secret. None if it cannot."""
    own = settings.oidc_client_id if settings.oidc_client_secret is None else None
    client_id = settings.oidc_device_client_id or own
    if settings.a2a_oauth_issuer is None or client_id is None:
        return None
    audience = settings.a2a_oauth_audience
    return {
        "issuer": settings.a2a_oauth_issuer,
        "client_id": client_id,
        "scopes": settings.oidc_device_scopes or settings.oidc_scopes,
        "audience": None if audience == ANY_AUDIENCE else audience,
    }


def _problem(code: int, error: str, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    body = {"error": error, "message": sentence}
    return JSONResponse(body, status_code=code, headers={**_HEADERS, **(headers or {})})
