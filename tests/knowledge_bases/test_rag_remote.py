"""The errors of a remote knowledge base that does not respond as one."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ai_platform_engineering.knowledge_bases.rag.remote import RemoteError, RemoteKnowledgeBase
from ai_platform_engineering.mcp.protocol import http_app
from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer
from ai_platform_engineering.settings import load_settings
from tests.servers import serving

RUNS_THERE = "Check that `platform-engineer rag serve` runs there."


async def listing_error(app: Any) -> str:
    """The error when datasources are listed, without the address."""
    async with serving(lambda _settings: app, {}) as url:
        settings = load_settings({"A2A_AGENTS_AUTH_KEY": "secret-key-of-ours"}, env_file=None)
        with pytest.raises(RemoteError) as refusal:
            await RemoteKnowledgeBase(settings, f"{url}/mcp").datasources()
    assert "secret-key" not in str(refusal.value)
    return str(refusal.value).replace(f"The knowledge base at {url}/mcp (RAG_SERVER_URL) ", "It ")


def answering(status: int, body: str, kind: str = "application/json") -> Starlette:
    async def answer(_request: Request) -> Response:
        return PlainTextResponse(body, status, media_type=kind)

    return Starlette(routes=[Route("/mcp", answer, methods=["POST"])])


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "refused the credentials (HTTP 401 Unauthorized). Set A2A_AGENTS_AUTH_KEY to the key of that server."),
        (403, "refused the credentials (HTTP 403 Forbidden). Set A2A_AGENTS_AUTH_KEY to the key of that server."),
        (404, f"answered HTTP 404 Not Found. {RUNS_THERE}"),
        (503, f"answered HTTP 503 Service Unavailable. {RUNS_THERE}"),
    ],
)
async def test_a_server_that_refuses(status: int, reason: str) -> None:
    assert await listing_error(answering(status, "{}")) == f"It {reason}"


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        ("<html>", "text/html", "answered with text/html instead of JSON or events"),
        ('{"hello": 1}', "application/json", "closed the connection without an answer"),
        ('{"jsonrpc": "2.0", "id": 0, "result": {}}', "application/json", "sent a response that is not MCP"),
    ],
)
async def test_a_server_that_is_another(body: str, kind: str, reason: str) -> None:
    assert await listing_error(answering(200, body, kind)) == f"It {reason}. {RUNS_THERE}"


async def test_tools_that_are_others() -> None:
    others = ToolServer("others")

    @others.tool
    async def list_datasources() -> str:
        return "handbook"

    expected = f"It sent a response that is not one of a knowledge base. {RUNS_THERE}"
    assert await listing_error(http_app(others, "/mcp")) == expected


async def test_the_error_of_the_server_is_passed_on() -> None:
    broken = ToolServer("broken")

    @broken.tool
    async def list_datasources() -> str:
        raise ToolError("The store is away.")

    assert await listing_error(http_app(broken, "/mcp", stateless=True)) == "The store is away."
