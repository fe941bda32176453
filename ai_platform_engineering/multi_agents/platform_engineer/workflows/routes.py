"""`/workflows`: which workflows there are, and which of them can be started, for surfaces that offer them."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.multi_agents.platform_engineer.workflows.loader import Offer


def workflow_route(found: Sequence[Offer]) -> Route:
    async def list_workflows(request: Request) -> Response:
        return JSONResponse({"workflows": [offer.facts() for offer in found]})

    return Route("/workflows", list_workflows, methods=["GET"])
