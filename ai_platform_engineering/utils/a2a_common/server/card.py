"""Serves the agent card for both protocol versions, with an ETag, and adds the sign-in of the provider to it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types.a2a_pb2 import (
    AgentCard,
    AuthorizationCodeOAuthFlow,
    DeviceCodeOAuthFlow,
    OAuth2SecurityScheme,
    OAuthFlows,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ai_platform_engineering.utils.a2a_common.codec.event_json import dumps
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.oidc.provider import Provider, metadata_addresses

if TYPE_CHECKING:
    from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer

_PAUSE_SECONDS: Final = 60.0


class ChangingCard(Protocol):
    """A card that changes while the server runs. `plain` is its constant part."""

    @property
    def plain(self) -> AgentCard: ...

    async def current(self) -> AgentCard:
        """The current card: the same object until it changes."""
        ...


def card_routes(card: AgentCard | ChangingCard, *paths: str) -> list[Route]:
    """The routes of the card. It is encoded again only when it has changed."""
    encoded: tuple[AgentCard, bytes, str] | None = None

    async def show(request: Request) -> Response:
        nonlocal encoded
        current = card if isinstance(card, AgentCard) else await card.current()
        if encoded is None or encoded[0] is not current:
            body = dumps(agent_card_to_dict(current))
            encoded = (current, body, f'W/"{hashlib.sha256(body).hexdigest()}"')
        _, body, tag = encoded
        known = {each.strip() for each in request.headers.get("if-none-match", "").split(",")}
        if known & {"*", tag, tag.removeprefix("W/")}:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(body, media_type="application/json", headers={"ETag": tag})

    return [Route(path, show, methods=["GET"]) for path in paths]


class CardWithFlows:
    """`card` plus the OAuth2 flows of the provider, as soon as its metadata are known.

    A provider that cannot be reached must not delay every reader of the card, so it is asked again after a pause.
    """

    def __init__(
        self,
        card: AgentCard | ChangingCard,
        issuer: Issuer,
        scopes: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plain = card if isinstance(card, AgentCard) else card.plain
        self._inner = card
        self._issuer = issuer
        self._scopes = dict.fromkeys(scopes.split(), "")
        self._clock = clock
        self._pause_ends = float("-inf")
        self._built: tuple[AgentCard, Provider, AgentCard] | None = None

    async def current(self) -> AgentCard:
        inner = self._inner if isinstance(self._inner, AgentCard) else await self._inner.current()
        provider = await self._provider()
        if provider is None:
            return inner
        if self._built is None or self._built[0] is not inner or self._built[1] is not provider:
            card = AgentCard()
            card.CopyFrom(inner)
            for name, scheme in flow_schemes(provider, self._scopes).items():
                card.security_schemes[name].CopyFrom(scheme)
                requirement = SecurityRequirement(schemes={name: StringList(list=[*self._scopes])})
                card.security_requirements.append(requirement)
            self._built = (inner, provider, card)
        return self._built[2]

    async def _provider(self) -> Provider | None:
        if self._clock() < self._pause_ends:
            return None
        try:
            return await self._issuer.provider()
        except ReadableError:
            self._pause_ends = self._clock() + _PAUSE_SECONDS
            return None


def flow_schemes(provider: Provider, scopes: Mapping[str, str]) -> dict[str, SecurityScheme]:
    """The OAuth2 flows by which people get an access token of the provider. A scheme has one flow."""
    token, code, device = (
        provider.token_endpoint,
        provider.authorization_endpoint,
        provider.device_authorization_endpoint,
    )
    flows = {}
    if token is not None and code is not None:
        by_code = AuthorizationCodeOAuthFlow(
            authorization_url=code, token_url=token, refresh_url=token, scopes=scopes, pkce_required=True
        )
        flows["oauth2_code"] = OAuthFlows(authorization_code=by_code)
    if token is not None and device is not None:
        by_device = DeviceCodeOAuthFlow(
            device_authorization_url=device, token_url=token, refresh_url=token, scopes=scopes
        )
        flows["oauth2_device"] = OAuthFlows(device_code=by_device)
    metadata = metadata_addresses(provider.issuer)[0]
    return {
        name: SecurityScheme(oauth2_security_scheme=OAuth2SecurityScheme(flows=flow, oauth2_metadata_url=metadata))
        for name, flow in flows.items()
    }
