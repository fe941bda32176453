"""A document that somebody sends, as a source of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.source import Item, Loaded
from ai_platform_engineering.knowledge_bases.rag.stores.store import Known

UPLOADED: Final = "uploaded documents"


@dataclass(frozen=True, slots=True)
class UploadSource:
    """One document of a datasource. The others are not listed, and stay."""

    datasource: str
    path: str
    loaded: Loaded
    origin: str = UPLOADED
    complete: bool = False

    async def items(self) -> AsyncIterator[Item]:
        yield Item(self.path, self._load)

    async def _load(self, _known: Known | None) -> Loaded:
        return self.loaded
