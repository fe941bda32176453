"""What documents are ingested from: a listing of items, each of which can be loaded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ai_platform_engineering.knowledge_bases.rag.stores.store import Known
from ai_platform_engineering.utils.errors import ReadableError


class SourceError(ReadableError):
    """A source or one of its items cannot be read: which one, why, and the way out."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The bytes of an item. `media_type` is what the source declares (a Content-Type header), `name` ends like a file
    of its kind where nothing is declared; `link` is where people read it; `revision` is what the source calls this
    state (an ETag), given back as `Known.revision` the next time."""

    content: bytes
    media_type: str | None
    name: str
    link: str
    revision: str | None = None
    updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The source says that the item is as it was at the known revision."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The item is gone, although it was listed."""


@dataclass(frozen=True, slots=True)
class Item:
    """`path` is the place of the document in its datasource. `load` is given what is known of the document that is
    kept; it raises a `ReadableError` where the item cannot be read, and then what is kept of it stays."""

    path: str
    load: Callable[[Known | None], Awaitable[Loaded | Unchanged | Absent]]


class Source(Protocol):
    """A datasource as it is now. `items` is iterated once; each item is loaded at most once, several at a time."""

    @property
    def datasource(self) -> str: ...

    @property
    def origin(self) -> str:
        """Where it is, for people: a directory, an address."""

    @property
    def complete(self) -> bool:
        """Asked when `items` has ended. False where a limit or an error cut the listing: then nothing is removed."""

    def items(self) -> AsyncIterator[Item]:
        """All items that are there; raises a `ReadableError` where there is no listing at all."""
