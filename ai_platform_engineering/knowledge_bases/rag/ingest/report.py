"""What an ingest says: while it runs, and at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an ingest is: documents dealt with, of how many where the source knows, and chunks that were made.
    `path` is the document that was dealt with last."""

    documents: int
    total: int | None
    chunks: int
    path: str


class Failure(NamedTuple):
    """A document that could not be read, and why; what was kept of it before stays."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Documents by what became of them. Not `complete`: the listing was cut, so nothing was removed for not being
    there."""

    added: int
    updated: int
    unchanged: int
    removed: int
    failed: tuple[Failure, ...]
    chunks: int
    seconds: float
    complete: bool
