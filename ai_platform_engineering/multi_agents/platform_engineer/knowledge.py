"""Where the supervisor finds its knowledge base: inside itself, or at an address."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.keys import agents_key

KNOWLEDGE_BASE: Final = "knowledge base"
"""Stands where agents have their names, and is the name of none."""

TOOLS: Final = ("search", "fetch_document", "list_datasources", "fetch_url")

SERVER: Final = "ai_platform_engineering.knowledge_bases.rag.server:make_server"
"""Makes the server from a knowledge base of this process."""


def knowledge_servers(settings: Settings) -> dict[str, list[McpServer]]:
    """The MCP server of the knowledge base; none where it is switched off."""
    return {KNOWLEDGE_BASE: [_server(settings)]} if settings.enable_rag else {}


def _server(settings: Settings) -> McpServer:
    if settings.rag_server_url is None:
        return McpServer(name="rag", transport="memory", module=SERVER, tools=TOOLS)
    key = agents_key(settings)
    headers = {"Authorization": f"Bearer ${{{key.setting}}}"} if key else {}
    return McpServer(name="rag", transport="http", url=settings.rag_server_url, headers=headers, tools=TOOLS)
