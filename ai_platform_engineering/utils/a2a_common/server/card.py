"""Serves the agent card for both protocol versions, with an ETag."""

from __future__ import annotations

import hashlib
from typing import Protocol

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types.a2a_pb2 import AgentCard
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ai_platform_engineering.utils.a2a_common.codec.event_json import dumps


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
