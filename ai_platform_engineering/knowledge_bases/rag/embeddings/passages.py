"""What is embedded for a chunk: its words, and where they stand."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk

PASSAGE_VERSION: Final = "1"
"""Changes when the same chunk is embedded differently: then everything is embedded again."""


def passage(title: str, chunk: Chunk) -> str:
    """A chunk seldom says what it is about; its headings and the title of its document do."""
    headings = chunk.section if chunk.section.startswith(title) else f"{title} > {chunk.section}".removesuffix(" > ")
    return f"{headings}\n{chunk.text}"
