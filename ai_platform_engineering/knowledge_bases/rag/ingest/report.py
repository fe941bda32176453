"""The progress of an ingest, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of processed documents, their total if the source knows it, and the number of new chunks. `path` is
    the document that was processed last."""

    documents: int
    total: int | None
    chunks: int
    path: str


OnProgress = Callable[[Progress], None]


class FailedDocument(NamedTuple):
    """A document that could not be read, and why. Its stored version, if there is one, stays."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The number of documents by outcome. If it is not `complete`, the listing was cut, and no document was removed for
    missing in it."""

    added: int
    updated: int
    unchanged: int
    removed: int
    failed: tuple[FailedDocument, ...]
    chunks: int
    seconds: float
    complete: bool
