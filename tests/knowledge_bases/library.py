"""A knowledge base behind a real MCP server that keeps a record of every call, and a supervisor that uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from starlette.types import ASGIApp

from ai_platform_engineering.mcp.protocol import http_app
from ai_platform_engineering.mcp.tool_server import ToolServer
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.servers import Caller, calling, serving

LONG = "long"
"""The id of a document of 50,000 characters."""


@dataclass
class Library:
    """What was asked of the knowledge base: tool and arguments, in order."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def count(self, tool: str) -> int:
        return sum(name == tool for name, _ in self.calls)

    def server(self) -> ToolServer:
        server = ToolServer("library")

        @server.tool
        async def search(
            query: str, limit: int = 5, filters: dict[str, str] | None = None, datasource: str | None = None
        ) -> dict[str, Any]:
            self.calls.append(("search", {"query": query, "limit": limit}))
            results = [
                {
                    "document_id": f"handbook:{number}.md",
                    "title": f"Page {number}",
                    "section": "Slim",
                    "datasource": "handbook",
                    "link": f"https://docs.example/{number}",
                    "score": 0.9,
                    "snippet": f"SLIM is a messaging layer, part {number}.",
                }
                for number in range(limit)
            ]
            return {"query": query, "results": results}

        @server.tool
        async def fetch_document(document_id: str) -> str:
            self.calls.append(("fetch_document", {"document_id": document_id}))
            if document_id == LONG:
                return "x" * 50_000
            return f"Title: Page\nDocument: {document_id}\nSource: https://docs.example/page\n\nSLIM carries messages."

        @server.tool
        async def list_datasources() -> list[str]:
            self.calls.append(("list_datasources", {}))
            return ["handbook"]

        return server


@asynccontextmanager
async def supervised(
    library: Library, model: Callable[[], BaseChatModel], folder: Path, **more: str
) -> AsyncIterator[Caller]:
    """A supervisor without agents whose knowledge base is the library, over streamable HTTP."""

    def library_app(_settings: Settings) -> ASGIApp:
        return http_app(library.server(), "/mcp", stateless=True)

    def supervisor_app(settings: Settings) -> ASGIApp:
        return create_app(settings, PlatformEngineerDeepAgent(settings, models=lambda *_: model()))

    environ = {"DATA_DIR": str(folder), "SANDBOX": "false", "ENABLE_NETUTILS": "false"} | more
    async with (
        serving(library_app, environ) as address,
        serving(supervisor_app, environ | {"RAG_SERVER_URL": f"{address}/mcp"}) as url,
        calling(url) as caller,
    ):
        yield caller
