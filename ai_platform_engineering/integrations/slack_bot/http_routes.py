"""The bot's HTTP routes: health checks, and Slack's requests without Socket Mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncApp
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

EVENTS_PATH: Final = "/slack/events"


def health_routes(ready: Callable[[], Awaitable[bool]]) -> list[Route]:
    """`/healthz`: the process is alive. `/readyz`: Slack can reach the bot."""

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        is_ready = await ready()
        return JSONResponse({"status": "ready" if is_ready else "starting"}, status_code=200 if is_ready else 503)

    return [Route("/healthz", healthz, methods=["GET"]), Route("/readyz", readyz, methods=["GET"])]


def events_route(app: Callable[[], AsyncApp], max_bytes: int) -> Route:
    """The route for Slack's requests. Bolt verifies Slack's signature."""

    async def events(request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > max_bytes:
                return JSONResponse({"error": "too large"}, status_code=413)
        try:
            bolt_request = to_async_bolt_request(request, bytes(body))
        except Exception:
            # Bolt parses the body before it verifies the signature, so any client can cause this.
            return JSONResponse({"error": "not a request of Slack"}, status_code=400)
        return to_starlette_response(await app().async_dispatch(bolt_request))

    return Route(EVENTS_PATH, events, methods=["POST"])
