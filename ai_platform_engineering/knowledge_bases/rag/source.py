"""The interface of document sources: a listing of items that can be loaded. Also the source of an uploaded document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion
from ai_platform_engineering.utils.errors import ReadableError

UPLOADED: Final = "uploaded documents"


class SourceError(ReadableError):
    """A source or one of its items cannot be read: which one, why, and the way out."""


@dataclass(frozen=True, slots=True)
class LoadedItem:
    """The bytes of an item.

    `media_type` is the type that the source declares (a Content-Type header). Without one, the suffix of `name`
    decides. `link` is the address where people read the item. `revision` is the source's name for this state (an ETag);
    the next ingest passes it back as `DocumentVersion.revision`.
    """

    content: bytes
    media_type: str | None
    name: str
    link: str
    revision: str | None = None
    updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The source says that the item has not changed since the stored revision."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The item was listed, but does not exist any more."""


@dataclass(frozen=True, slots=True)
class Item:
    """`path` is the path of the document in its datasource. `load` takes the stored version of the document, if there
    is one. It raises a `ReadableError` if the item cannot be read; the stored document then stays."""

    path: str
    load: Callable[[DocumentVersion | None], Awaitable[LoadedItem | Unchanged | Absent]]


class DocumentSource(Protocol):
    """A datasource in its current state. `items` is iterated once. Each item is loaded at most once, several in
    parallel."""

    @property
    def datasource(self) -> str: ...

    @property
    def origin(self) -> str:
        """The directory or URL, for people."""

    @property
    def complete(self) -> bool:
        """Valid after `items` has ended. False if a limit or an error cut the listing; then no document is removed."""

    def items(self) -> AsyncIterator[Item]:
        """All existing items. Raises a `ReadableError` if they cannot be listed at all."""


@dataclass(frozen=True, slots=True)
class UploadSource:
    """One uploaded document. The other documents of its datasource are not listed and stay."""

    datasource: str
    path: str
    item: LoadedItem
    origin: str = UPLOADED
    complete: bool = False

    async def items(self) -> AsyncIterator[Item]:
        yield Item(self.path, self._load)

    async def _load(self, _stored: DocumentVersion | None) -> LoadedItem:
        return self.item
