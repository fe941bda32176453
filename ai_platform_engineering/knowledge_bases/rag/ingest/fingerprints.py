"""Fingerprints: what tells that a document would become the same chunks and vectors again."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.chunking import CHUNKER_VERSION
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder
from ai_platform_engineering.knowledge_bases.rag.embeddings.passages import PASSAGE_VERSION
from ai_platform_engineering.knowledge_bases.rag.readers.reading import READER_VERSION
from ai_platform_engineering.knowledge_bases.rag.source import Loaded

_LENGTH: Final = 16


def recipe_of(embedder: Embedder | None) -> str:
    """How documents are made into chunks and vectors now; every fingerprint begins with it."""
    made_with = (PASSAGE_VERSION, embedder.name) if embedder else ()
    return f"{_digest(READER_VERSION, CHUNKER_VERSION, *made_with)[:_LENGTH]}:"


def fingerprint_of(loaded: Loaded, recipe: str) -> str:
    """Of the bytes and of what else is kept of them; the time of the last change alone changes nothing."""
    return recipe + _digest(loaded.content, loaded.media_type or "", loaded.name, loaded.link)


def _digest(*parts: str | bytes) -> str:
    digest = sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()
