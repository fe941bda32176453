"""The server of the knowledge base: MCP at /mcp, REST at /rag, health checks, and authentication."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from ai_platform_engineering.knowledge_bases.rag.caller_visibility import CallerVisibility
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.knowledge_bases.rag.rest import lazy_rest
from ai_platform_engineering.knowledge_bases.rag.server import make_server
from ai_platform_engineering.mcp.protocol import http_app
from ai_platform_engineering.policy.loading import load_policy
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.server.auth import auth_middleware
from ai_platform_engineering.utils.a2a_common.server.browser_checks import host_middleware, origin_middleware
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.keys import required_key
from ai_platform_engineering.utils.rest.asgi import BodyLimit, request_limit

MCP_PATH: Final = "/mcp"
REST_PATH: Final = "/rag"
_READY_SECONDS: Final = 2.0

logger = logging.getLogger(__name__)


def create_rag_app(settings: Settings) -> Starlette:
    knowledge_base = KnowledgeBase(settings)
    visibility = Middleware(CallerVisibility, policy=load_policy(settings), key=required_key(settings))
    # Stateless, so that any number of servers can share one address. No tool sends notifications.
    mcp = http_app(make_server(knowledge_base), MCP_PATH, stateless=True, json_response=True)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with mcp.router.lifespan_context(mcp):
            # The store is opened now, so that the first request does not wait for it.
            opening = asyncio.create_task(_open(knowledge_base))
            try:
                yield
            finally:
                opening.cancel()
                await asyncio.wait({opening})
                await knowledge_base.aclose()

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        with suppress(ReadableError, TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                await knowledge_base.datasources()
                return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "starting"}, status_code=503)

    return Starlette(
        routes=[
            Route("/healthz", healthz, methods=["GET"]),
            Route("/readyz", readyz, methods=["GET"]),
            Mount(REST_PATH, lazy_rest(knowledge_base)),
            Mount("/", BodyLimit(mcp, request_limit(settings))),
        ],
        lifespan=lifespan,
        middleware=[
            *host_middleware(settings),
            *origin_middleware(settings),
            *auth_middleware(settings, "behind"),
            visibility,
        ],
    )


async def _open(knowledge_base: KnowledgeBase) -> None:
    try:
        await knowledge_base.datasources()
    except ReadableError as error:
        logger.error("The knowledge base cannot be opened yet: %s", error)
