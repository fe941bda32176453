"""The recorded results of the knowledge base are what its server gives today, and what others take them for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp.types import CallToolResult

from ai_platform_engineering.knowledge_bases.rag.app import create_rag_app
from ai_platform_engineering.knowledge_bases.rag.results import SearchResults
from ai_platform_engineering.knowledge_bases.rag.views import DocumentView
from tests.fixtures.record import HERE, record_knowledge
from tests.servers import serving

SEARCH, DOCUMENT = "rag_search_response.json", "rag_fetch_document_response.json"
AGAIN = "record again: python -m tests.fixtures.record"


def recorded(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


async def test_the_recordings_are_what_a_real_server_gives(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "RAG_PRODUCT_DOCS": "false", "EMBEDDINGS_PROVIDER": "offline"}
    async with serving(create_rag_app, environ) as url:
        found, document = await record_knowledge(url)
    assert found == recorded(SEARCH), AGAIN
    assert document == recorded(DOCUMENT), AGAIN


def test_a_search_has_three_results() -> None:
    result = CallToolResult.model_validate(recorded(SEARCH))
    found = SearchResults.model_validate(result.structuredContent)
    assert len(found.results) == 3
    assert all(each.document_id and each.link and each.snippet for each in found.results)


def test_a_document_has_about_five_thousand_characters() -> None:
    result = CallToolResult.model_validate(recorded(DOCUMENT))
    assert 4500 < len(DocumentView.model_validate(result.structuredContent).text) < 5500
