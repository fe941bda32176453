"""The agent card at its address, for both protocol versions; who has it already is told so."""

from __future__ import annotations

import hashlib

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types.a2a_pb2 import AgentCard
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ai_platform_engineering.utils.a2a_common.http.event_json import dumps


def card_routes(card: AgentCard, *paths: str) -> list[Route]:
    """The card at each of the paths, written once."""
    body = dumps(agent_card_to_dict(card))
    tag = f'W/"{hashlib.sha256(body).hexdigest()}"'

    async def show(request: Request) -> Response:
        known = {each.strip() for each in request.headers.get("if-none-match", "").split(",")}
        if known & {"*", tag, tag.removeprefix("W/")}:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(body, media_type="application/json", headers={"ETag": tag})

    return [Route(path, show, methods=["GET"]) for path in paths]
