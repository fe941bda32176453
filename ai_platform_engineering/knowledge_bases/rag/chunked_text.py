"""Content converted to Markdown and cut into chunks: in a thread here, in a separate process in `web.reader_pool`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document
from ai_platform_engineering.knowledge_bases.rag.readers.reading import read


@dataclass(frozen=True, slots=True)
class ChunkedText:
    """`text` is Markdown. `pieces` are the section and the text of each chunk."""

    title: str
    text: str
    pieces: tuple[tuple[str, str], ...]

    def chunks(self, document_id: str) -> list[Chunk]:
        return [Chunk(document_id, index, section, text) for index, (section, text) in enumerate(self.pieces)]


class Chunker(Protocol):
    """Raises an `UnreadableDocumentError` for content that cannot be read."""

    async def __call__(self, content: bytes, media_type: str, name: str, base_url: str | None) -> ChunkedText: ...


async def chunk_in_thread(content: bytes, media_type: str, name: str, base_url: str | None) -> ChunkedText:
    """For trusted content only: a thread cannot be stopped."""
    return await asyncio.to_thread(chunk_content, content, media_type, name, base_url)


def chunk_content(content: bytes, media_type: str, name: str, base_url: str | None) -> ChunkedText:
    from ai_platform_engineering.knowledge_bases.rag.chunking import chunks_of  # noqa: PLC0415 # large libraries

    extracted = read(content, media_type, name, base_url)
    # The chunks do not depend on the datasource, the path or the link.
    chunks = chunks_of(Document("", "", extracted.title, extracted.text, ""))
    return ChunkedText(extracted.title, extracted.text, tuple((chunk.section, chunk.text) for chunk in chunks))
