"""From content to a title, a text and its pieces: here in a thread, for content of strangers in `web.apart`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document
from ai_platform_engineering.knowledge_bases.rag.readers.reading import read


@dataclass(frozen=True, slots=True)
class Cut:
    """What was read, as Markdown, and the pieces it was cut into, each with its section."""

    title: str
    text: str
    pieces: tuple[tuple[str, str], ...]

    def chunks(self, document_id: str) -> list[Chunk]:
        return [Chunk(document_id, index, section, text) for index, (section, text) in enumerate(self.pieces)]


class Cutter(Protocol):
    """Raises an UnreadableError for what cannot be read."""

    async def __call__(self, content: bytes, media_type: str, name: str, base_url: str | None) -> Cut: ...


async def cut_here(content: bytes, media_type: str, name: str, base_url: str | None) -> Cut:
    """In a thread, which nothing can stop: for content that is trusted."""
    return await asyncio.to_thread(cut, content, media_type, name, base_url)


def cut(content: bytes, media_type: str, name: str, base_url: str | None) -> Cut:
    from ai_platform_engineering.knowledge_bases.rag.chunking import chunks_of  # noqa: PLC0415 # large libraries

    reading = read(content, media_type, name, base_url)
    # Where a document is kept has no part in how it is cut.
    chunks = chunks_of(Document("", "", reading.title, reading.text, ""))
    return Cut(reading.title, reading.text, tuple((chunk.section, chunk.text) for chunk in chunks))
