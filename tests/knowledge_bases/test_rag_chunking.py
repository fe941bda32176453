"""Chunks keep the words, the order and the structure of a document."""

from __future__ import annotations

from ai_platform_engineering.knowledge_bases.rag.chunking import chunks_of
from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document


def cut(text: str) -> list[Chunk]:
    return chunks_of(Document("docs", "a.md", "A", text, "a.md"))


def test_sections_are_trails_of_headings() -> None:
    chunks = cut("# Deploy\n\nIntro.\n\n## Remote *agents*\n\nHow.\n\n# Operate\n\nLogs.\n")

    assert [(chunk.section, chunk.text) for chunk in chunks] == [
        ("Deploy", "# Deploy\n\nIntro."),
        ("Deploy > Remote agents", "## Remote *agents*\n\nHow."),
        ("Operate", "# Operate\n\nLogs."),
    ]
    assert [chunk.chunk_id for chunk in chunks] == ["docs:a.md#0", "docs:a.md#1", "docs:a.md#2"]
