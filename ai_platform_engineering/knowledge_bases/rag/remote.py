"""A read-only client of the knowledge base at `RAG_SERVER_URL`."""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

from mcp import McpError
from pydantic import BaseModel, ValidationError

from ai_platform_engineering.knowledge_bases.rag.documents import Datasource
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResults
from ai_platform_engineering.knowledge_bases.rag.views import DatasourcesView
from ai_platform_engineering.mcp.connection import ConnectionState, McpCall, open_session
from ai_platform_engineering.mcp.errors import CredentialsRefused, ServerFailure
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.results import ToolAnswer
from ai_platform_engineering.mcp.streamable_http import http_streams
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.connections import causes
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.keys import opening_key
from ai_platform_engineering.utils.redact import Redactor, redact

View = TypeVar("View", bound=BaseModel)
_CHECK: Final = "Check that `platform-engineer rag serve` runs there."


class RemoteError(ReadableError):
    """The server cannot be reached, or it returned an error."""


class RemoteKnowledgeBase:
    """The read operations of `KnowledgeBase`, over MCP."""

    def __init__(self, settings: Settings, url: str) -> None:
        key = opening_key(settings)
        headers = {} if key is None else {"Authorization": f"Bearer {key.value}"}
        self._endpoint = Endpoint("rag", Redactor(), url=url, headers=headers)
        self._timeout = settings.tool_timeout

    async def search(
        self, query: str, limit: int = 5, filters: Filters | None = None, datasource: str | None = None
    ) -> SearchResults:
        given = None if filters is None else filters.model_dump(mode="json", exclude_none=True)
        arguments = {"query": query, "limit": limit, "filters": given, "datasource": datasource}
        return await self._call("search", arguments, SearchResults)

    async def datasources(self) -> list[Datasource]:
        found = await self._call("list_datasources", {}, DatasourcesView)
        return [Datasource(**view.model_dump()) for view in found.datasources]

    async def aclose(self) -> None:
        """Each call has a connection of its own, so there is nothing to close."""

    async def _call(self, tool: str, arguments: dict[str, Any], view: type[View]) -> View:
        try:
            answer = await self._send(McpCall(tool, arguments))
        except TimeoutError as error:
            raise self._error(f"did not answer within {self._timeout:g} seconds") from error
        except (ExceptionGroup, McpError, ServerFailure) as error:
            raise self._error(*_reason(error)) from error
        if answer.failed:
            raise RemoteError(answer.text)
        try:
            return view.model_validate_json(answer.text)
        except ValidationError as error:
            raise self._error("sent a response that is not one of a knowledge base") from error

    async def _send(self, call: McpCall) -> ToolAnswer:
        state = ConnectionState()
        async with (
            asyncio.timeout(self._timeout),
            http_streams(self._endpoint, state) as streams,
            open_session(streams, state) as session,
        ):
            return await session.call_tool(call, self._timeout)

    def _error(self, reason: str, way_out: str = _CHECK) -> RemoteError:
        return RemoteError(f"The knowledge base at {redact(self._endpoint.url)} (RAG_SERVER_URL) {reason}. {way_out}")


def _reason(error: Exception) -> tuple[str, str]:
    """The cause of the failure, and the way out."""
    for cause in causes(error):
        trouble = cause.error.data if isinstance(cause, McpError) else cause
        match trouble:
            case CredentialsRefused(answer=answer):
                way_out = "Set A2A_AGENTS_AUTH_KEY to the key of that server."
                return f"refused the credentials ({answer})", way_out
            case ServerFailure(reason=reason):
                return reason, _CHECK
    return "sent a response that is not MCP", _CHECK
