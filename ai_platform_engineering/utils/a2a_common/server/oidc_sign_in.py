"""Sign-in of browsers with OpenID Connect: authorization code with PKCE, and logout at the provider.

`GET /session/start` sends the browser to the provider, which sends it back to `GET /session/callback`. Both end with a
redirect to the page, never to another address: only the fragment of the page's own URL can be chosen.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ai_platform_engineering.audit.access import AccessAudit
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.identity.token_claims import UnusableClaimsError, claim_at
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.server.auth import CALLBACK_PATH, START_PATH
from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer, IssuerError
from ai_platform_engineering.utils.a2a_common.server.sign_in_transactions import SignInTransactions, Transaction
from ai_platform_engineering.utils.a2a_common.server.token_checks import TokenRefusedError
from ai_platform_engineering.utils.oidc.provider import Provider, ProviderError, get_json, provider_client
from ai_platform_engineering.utils.oidc.token_endpoint import Client, GrantError, Tokens, request_tokens

logger = logging.getLogger(__name__)

Failure = Literal["declined", "expired", "refused", "unavailable"]
"""Why a sign-in failed; the page has a sentence for each."""

MAX_NAME_LENGTH: Final = 200
_PLACE: Final = re.compile(r"#/[A-Za-z0-9/_.~%-]{0,500}")
_HEADERS: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class SignInFailedError(Exception):
    """The text is the reason for the log, as a sentence."""

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure


class OidcSignIn:
    """`signed_in(response, caller, name)` writes the session of a verified caller into a response."""

    def __init__(
        self,
        issuer: Issuer,
        settings: Settings,
        transactions: SignInTransactions,
        signed_in: Callable[[Response, Principal, str | None], None],
        access: AccessAudit,
    ) -> None:
        secret = settings.oidc_client_secret
        self._issuer = issuer
        self._client = Client(settings.oidc_client_id or "", secret.get_secret_value() if secret else None)
        self._scopes = settings.oidc_scopes
        self._public_url = settings.a2a_public_url
        self._transactions = transactions
        self._signed_in = signed_in
        self._access = access

    def routes(self) -> list[Route]:
        return [
            Route(START_PATH, self._start, methods=["GET"]),
            Route(CALLBACK_PATH, self._callback, methods=["GET"]),
        ]

    async def logout_url(self, request: Request) -> str | None:
        """Where the browser goes to be signed out at the provider as well; None if the provider has no such page."""
        try:
            endpoint = (await self._issuer.provider()).end_session_endpoint
        except IssuerError:
            return None
        parameters = {"client_id": self._client.id, "post_logout_redirect_uri": self._base(request)}
        return None if endpoint is None else with_query(endpoint, parameters)

    async def _start(self, request: Request) -> Response:
        place = request.query_params.get("place", "")
        transaction = self._transactions.begin(place if _PLACE.fullmatch(place) else "")
        try:
            endpoint = (await self._issuer.provider()).authorization_endpoint
        except IssuerError:
            return self._failed("unavailable", transaction.place)
        if endpoint is None:
            logger.warning("The metadata of %s have no authorization_endpoint.", self._issuer.issuer)
            return self._failed("unavailable", transaction.place)
        parameters = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": self._redirect_uri(request),
            "scope": self._scopes,
            "state": transaction.state,
            "nonce": transaction.nonce,
            "code_challenge": transaction.challenge,
            "code_challenge_method": "S256",
        }
        response = RedirectResponse(with_query(endpoint, parameters), status_code=303, headers=_HEADERS)
        self._transactions.write(transaction, response)
        return response

    async def _callback(self, request: Request) -> Response:
        transaction = self._transactions.read(request.cookies)
        place = transaction.place if transaction is not None else ""
        address = request.client.host if request.client else ""
        try:
            caller, name = await self._verified(request, transaction)
        except SignInFailedError as error:
            logger.warning("A sign-in with OpenID Connect failed: %s", error)
            if error.failure == "refused":
                self._access.refused(address, "the sign-in at the OpenID Connect provider is not valid")
            response = self._failed(error.failure, place)
        else:
            response = _to_page(place)
            self._access.signed_in(caller, address)
            self._signed_in(response, caller, name)
        self._transactions.delete(response)
        return response

    async def _verified(self, request: Request, transaction: Transaction | None) -> tuple[Principal, str | None]:
        sent = request.query_params
        if transaction is None or not transaction.accepts(sent.get("state", "")):
            raise SignInFailedError("expired", "the callback belongs to no sign-in of this browser, or came too late.")
        try:
            provider = await self._issuer.provider()
            _check_response(sent, provider)
            async with provider_client(self._issuer.tls) as http:
                grant = {
                    "grant_type": "authorization_code",
                    "code": sent["code"],
                    "redirect_uri": self._redirect_uri(request),
                    "code_verifier": transaction.verifier,
                }
                tokens = await request_tokens(http, provider, self._client, grant)
            claims = await self._id_token_claims(tokens, transaction)
            claims = await self._with_userinfo(claims, tokens, provider)
            caller = self._issuer.rules.principal(claims)
            return caller, display_name(claims) or caller.subject
        except (IssuerError, ProviderError) as error:
            raise SignInFailedError("unavailable", f"{self._issuer.issuer} cannot be used: {error}.") from None
        except GrantError as error:
            raise SignInFailedError("refused", f"the provider refused the code ({error}).") from None
        except (TokenRefusedError, UnusableClaimsError) as error:
            raise SignInFailedError("refused", str(error)) from None

    async def _id_token_claims(self, tokens: Tokens, transaction: Transaction) -> Mapping[str, Any]:
        if tokens.id_token is None:
            raise SignInFailedError("refused", "the provider sent no ID token; does OIDC_SCOPES contain openid?")
        return await self._issuer.check_id_token(
            tokens.id_token, self._client.id, transaction.nonce, tokens.access_token
        )

    async def _with_userinfo(self, claims: Mapping[str, Any], tokens: Tokens, provider: Provider) -> Mapping[str, Any]:
        """The claims, with those of the userinfo endpoint if the ID token has no groups."""
        if claim_at(claims, self._issuer.rules.groups_claim) is not None or provider.userinfo_endpoint is None:
            return claims
        async with provider_client(self._issuer.tls) as http:
            more = await get_json(http, provider.userinfo_endpoint, {"Authorization": f"Bearer {tokens.access_token}"})
        return {**more, **claims} if isinstance(more, dict) and more.get("sub") == claims["sub"] else claims

    def _redirect_uri(self, request: Request) -> str:
        return f"{self._base(request)}{CALLBACK_PATH.removeprefix('/')}"

    def _base(self, request: Request) -> str:
        """The address of the page: `A2A_PUBLIC_URL`, else the host of the request, which the server has checked."""
        return f"{(self._public_url or str(request.base_url)).rstrip('/')}/"

    def _failed(self, failure: Failure, place: str) -> Response:
        return _to_page(place, {"sign_in": failure})


def display_name(claims: Mapping[str, Any]) -> str | None:
    """The name of a person for the page; None if the claims have none."""
    named = (claims.get(claim) for claim in ("name", "preferred_username", "email"))
    return next(
        (name[:MAX_NAME_LENGTH] for name in named if isinstance(name, str) and name.isprintable() and name), None
    )


def with_query(address: str, parameters: Mapping[str, str]) -> str:
    """The address with further parameters. Its own stay."""
    parts = urlsplit(address)
    query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *parameters.items()], quote_via=quote)
    return urlunsplit(parts._replace(query=query, fragment=""))


def _check_response(sent: Mapping[str, str], provider: Provider) -> None:
    """Raise `SignInFailedError` unless the response has a code, and comes from the provider (RFC 9207)."""
    if (sent.get("iss") or (provider.issuer if not provider.sends_issuer else None)) != provider.issuer:
        raise SignInFailedError("refused", "the response of the sign-in comes from another issuer.")
    error = sent.get("error", "")
    if error == "access_denied":
        raise SignInFailedError("declined", "the provider reports access_denied.")
    if error:
        code = error if re.fullmatch(r"[a-z_]{1,40}", error) else "an error without a standard code"
        raise SignInFailedError("refused", f"the provider reports {code}.")
    if not sent.get("code"):
        raise SignInFailedError("refused", "the response of the provider has no code.")


def _to_page(place: str, parameters: Mapping[str, str] | None = None) -> Response:
    """A redirect to the page. It is relative to the callback, so it works below any path prefix."""
    query = f"?{urlencode(parameters)}" if parameters else ""
    return RedirectResponse(f"../{query}{place}", status_code=303, headers=_HEADERS)
