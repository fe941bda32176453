"""The MCP server of the knowledge base: search, documents, datasources, web pages. Its tools are read-only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final

from mcp.types import ToolAnnotations
from pydantic import BaseModel, BeforeValidator, Field

from ai_platform_engineering.knowledge_bases.rag.knowledge_base import DEFAULT_RESULTS, MAX_RESULTS, KnowledgeBase
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResults
from ai_platform_engineering.knowledge_bases.rag.views import DatasourcesView, DocumentView, WebPageView
from ai_platform_engineering.mcp.tool_server import ToolError, ToolResult, ToolServer
from ai_platform_engineering.utils.errors import ReadableError

_NAME: Final = "knowledge_base"
_INSTRUCTIONS: Final = (
    "A knowledge base of documents, among them the documentation of this platform. Search first, read the documents "
    "that fit, then answer from them and name their titles and links."
)


def make_server(knowledge_base: KnowledgeBase) -> ToolServer:
    """The caller owns the knowledge base and closes it."""
    server, tools = ToolServer(_NAME, _INSTRUCTIONS), KnowledgeTools(knowledge_base)
    for tool, title, view, contacts in (
        (tools.search, "Search the knowledge base", SearchResults, False),
        (tools.fetch_document, "Read a document", DocumentView, False),
        (tools.list_datasources, "List datasources", DatasourcesView, False),
        (tools.fetch_url, "Read a web page", WebPageView, True),
    ):
        annotations = ToolAnnotations(
            title=title, readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=contacts
        )
        server.tool(tool, annotations=annotations, output=view)
    return server


def _limit(given: Any) -> int:
    """Models send numbers as text, with fractions, or not at all. All of these are accepted."""
    if given is None or isinstance(given, bool):
        return DEFAULT_RESULTS
    try:
        return max(1, min(int(float(given)), MAX_RESULTS))
    except (TypeError, ValueError, OverflowError):
        return DEFAULT_RESULTS


def _object(given: Any) -> Any:
    """Accepts an object that is sent as JSON text. An object without values is None."""
    if isinstance(given, str):
        with suppress(ValueError):
            given = json.loads(given or "null")
    if isinstance(given, dict):
        given = {name: value for name, value in given.items() if value not in (None, "")}
    return given or None


def _text(given: Any) -> Any:
    return (given.strip() or None) if isinstance(given, str) else given


@dataclass(frozen=True)
class KnowledgeTools:
    knowledge_base: KnowledgeBase

    async def search(
        self,
        query: Annotated[str, Field(description="A question, or the words a document would use.")],
        limit: Annotated[int, BeforeValidator(_limit), Field(description=f"Up to {MAX_RESULTS}.")] = DEFAULT_RESULTS,
        filters: Annotated[Filters | None, BeforeValidator(_object), Field(description="Usually left out.")] = None,
        datasource: Annotated[
            str | None,
            BeforeValidator(_text),
            Field(description="A name from list_datasources; all of them if left out."),
        ] = None,
    ) -> ToolResult:
        """Search the knowledge base by words and by meaning. Snippets are short: read what looks promising with
        fetch_document before relying on it.
        """
        with _readable():
            return _json(await self.knowledge_base.search(query, limit, filters, datasource))

    async def fetch_document(self, document_id: Annotated[str, Field(description="Of a search result.")]) -> ToolResult:
        """Read a whole document of the knowledge base, with its title and link."""
        with _readable():
            document = DocumentView.of(await self.knowledge_base.fetch_document(document_id))
        return ToolResult(document.page(), document.model_dump(mode="json", exclude_none=True))

    async def list_datasources(self) -> ToolResult:
        """List the datasources of the knowledge base: name, origin and size."""
        with _readable():
            return _json(DatasourcesView.of(await self.knowledge_base.datasources()))

    async def fetch_url(self, url: Annotated[str, Field(description="http:// or https://")]) -> ToolResult:
        """Read a web page that a person or a document names."""
        with _readable():
            page = await self.knowledge_base.fetch_url(url)
        return ToolResult(page.page(), page.model_dump(mode="json", exclude_none=True))


@contextmanager
def _readable() -> Iterator[None]:
    """Only the sentences of readable errors reach the model. All other errors are masked."""
    try:
        yield
    except ReadableError as error:
        raise ToolError(str(error)) from error


def _json(view: BaseModel) -> ToolResult:
    return ToolResult(view.model_dump_json(exclude_none=True), view.model_dump(mode="json", exclude_none=True))
