"""The first documents of a source, for a run that only has to show that it works."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ai_platform_engineering.knowledge_bases.rag.source import Item, Source


class Beginning:
    complete = False

    def __init__(self, source: Source, most: int | None) -> None:
        self._source = source
        self._most = most

    @property
    def datasource(self) -> str:
        return self._source.datasource

    @property
    def origin(self) -> str:
        return self._source.origin

    async def items(self) -> AsyncIterator[Item]:
        number = 0
        async for item in self._source.items():
            if number == self._most:
                return
            number += 1
            yield item
