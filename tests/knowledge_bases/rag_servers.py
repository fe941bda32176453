"""A knowledge base server on a loopback port, and the documents of a small handbook in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from ai_platform_engineering.knowledge_bases.rag.app import create_rag_app
from tests.servers import serving

HANDBOOK = Path(__file__).resolve().parent.parent / "fixtures" / "handbook"


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    """Keyword search and nothing of the product in it: what most tests need, at once."""
    return {"DATA_DIR": str(folder), "RAG_PRODUCT_DOCS": "false", "EMBEDDINGS_PROVIDER": "none"} | more


@asynccontextmanager
async def rag_server(folder: Path, **more: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose addresses begin at the server."""
    async with (
        serving(create_rag_app, environ_of(folder, **more)) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as http,
    ):
        yield http


async def upload_handbook(http: httpx.AsyncClient) -> None:
    for file in sorted(HANDBOOK.glob("*.md")):
        answer = await http.put(
            f"/rag/v1/datasources/handbook/documents/{file.name}",
            params={"link": f"https://handbook.example/{file.stem}"},
            content=file.read_bytes(),
            headers={"Content-Type": "text/markdown"},
        )
        assert answer.status_code in {200, 201}, answer.text


@asynccontextmanager
async def mcp_session(url: str, key: str | None = None) -> AsyncIterator[ClientSession]:
    """The MCP SDK's own client, over streamable HTTP."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=30) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def call(session: ClientSession, tool: str, **arguments: Any) -> CallToolResult:
    return await session.call_tool(tool, arguments)
