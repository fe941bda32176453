"""The interface of embedders, which turn text into vectors, and the text that is embedded for a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk
from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector
from ai_platform_engineering.utils.errors import ReadableError

PASSAGE_VERSION: Final = "1"
"""Change it when the passage of the same chunk changes: the next ingest then embeds all documents again."""


class EmbeddingsError(ReadableError):
    """Text cannot be embedded: by which model, why, and the way out."""


class Embedder(Protocol):
    """Thread-safe. Blocks: call it in a thread.

    Vectors have unit length and single precision (`array.array("f")`), so their dot product is the cosine.
    """

    @property
    def name(self) -> str:
        """Identifies the model and everything that makes its vectors incomparable with others. Part of every
        fingerprint."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text, in order. The vector of a text does not depend on the other texts."""

    def embed_query(self, text: str) -> Vector: ...


def passage(title: str, chunk: Chunk) -> str:
    """The text to embed for a chunk: its own text rarely names its subject, but the title and the headings do."""
    headings = chunk.section if chunk.section.startswith(title) else f"{title} > {chunk.section}".removesuffix(" > ")
    return f"{headings}\n{chunk.text}"
