"""A source that is limited to its first documents, for a short run that only checks that everything works."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ai_platform_engineering.knowledge_bases.rag.source import DocumentSource, Item


class Beginning:
    complete = False

    def __init__(self, source: DocumentSource, max_documents: int | None) -> None:
        self._source = source
        self._max_documents = max_documents

    @property
    def datasource(self) -> str:
        return self._source.datasource

    @property
    def origin(self) -> str:
        return self._source.origin

    async def items(self) -> AsyncIterator[Item]:
        number = 0
        async for item in self._source.items():
            if number == self._max_documents:
                return
            number += 1
            yield item
