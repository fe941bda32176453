"""A knowledge base behind `RAG_SERVER_URL`, for those who only look something up in it."""

from __future__ import annotations

from typing import Any

import httpx
from fastmcp import Client
from fastmcp.exceptions import FastMCPError, ToolError
from mcp import McpError

from ai_platform_engineering.knowledge_bases.rag.documents import Datasource
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResults
from ai_platform_engineering.knowledge_bases.rag.views import DatasourcesView
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.redact import redact


class RemoteError(ReadableError):
    """The server was not reached, or says what is wrong."""


class RemoteKnowledgeBase:
    """What `KnowledgeBase` can do without a store of its own, over MCP."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._url = url
        self._key = settings.a2a_auth_shared_key

    async def search(
        self, query: str, limit: int = 5, filters: Filters | None = None, datasource: str | None = None
    ) -> SearchResults:
        given = None if filters is None else filters.model_dump(mode="json", exclude_none=True)
        arguments = {"query": query, "limit": limit, "filters": given, "datasource": datasource}
        return SearchResults.model_validate(await self._call("search", arguments))

    async def datasources(self) -> list[Datasource]:
        found = DatasourcesView.model_validate(await self._call("list_datasources", {}))
        return [Datasource(**view.model_dump()) for view in found.datasources]

    async def aclose(self) -> None:
        """Nothing is held open between two calls."""

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        key = None if self._key is None else self._key.get_secret_value()
        try:
            async with Client(self._url, auth=key) as client:
                result = await client.call_tool(tool, arguments)
        except ToolError as error:
            raise RemoteError(str(error)) from error
        except (httpx.HTTPError, FastMCPError, McpError, RuntimeError, OSError) as error:
            where = f"The knowledge base at {redact(self._url)} (RAG_SERVER_URL)"
            raise RemoteError(f"{where} {_reason(error)}") from error
        return result.structured_content or {}


def _reason(error: Exception) -> str:
    """Why there is no answer, and the way out."""
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
    if status in {401, 403}:
        return f"refused the credentials (status {status}). Set A2A_AUTH_SHARED_KEY to the key of that server."
    if status is not None:
        reason = f"answered with status {status}"
    else:
        reason = "gave an answer that is not one of MCP" if isinstance(error, McpError) else "cannot be reached"
    return f"{reason}. Check that `platform-engineer rag serve` runs there."
