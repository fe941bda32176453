"""What a store does. It knows words and vectors, and nothing of models, files or web pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Datasource, Document
from ai_platform_engineering.utils.errors import ReadableError

Vector = Sequence[float]


class StoreError(ReadableError):
    """The store cannot be used: which one, why, and the way out. Never the address with its password."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a document that is kept. `fingerprint` changes with everything that would make other chunks or
    vectors of it; `revision` is what its source calls this state (an ETag), where it does."""

    fingerprint: str
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to search; everything that is set must hold."""

    datasource: str | None = None
    document_id: str | None = None
    path_prefix: str | None = None
    updated_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found. Higher scores are better; scores of two kinds of search do not compare."""

    chunk_id: str
    score: float


@dataclass(frozen=True, slots=True)
class FoundChunk:
    chunk: Chunk
    datasource: str
    title: str
    link: str
    updated: datetime | None


class Store(Protocol):
    """Safe to use from several threads, and beside other processes that use the same one. Hits come best first; equal
    scores are ordered by chunk id, so that the same content gives the same answer whatever order it came in."""

    def datasources(self) -> list[Datasource]: ...

    def known(self, datasource: str) -> Mapping[str, Known]:
        """By document id, all documents of the datasource that are kept whole."""

    def put(
        self, document: Document, known: Known, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None, model: str
    ) -> None:
        """Keep the document in place of what was kept of it before: all of it or, when it fails, nothing.

        `vectors` has one unit vector per chunk, made by `model`; None where there are none.
        """

    def note_revision(self, document_id: str, known: Known) -> None:
        """The document is as it was, but its source calls it something else now."""

    def note_origin(self, datasource: str, origin: str) -> None:
        """Where the datasource came from; also makes a datasource that has no documents yet."""

    def remove(self, document_ids: Collection[str]) -> None: ...

    def remove_datasource(self, name: str) -> bool:
        """False if there is none of that name."""

    def document(self, document_id: str) -> Document | None: ...

    def lexical(self, query: str, count: int, scope: Scope) -> list[Hit]:
        """By BM25 over title, section and text; no hit where no word matches."""

    def nearest(self, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        """By cosine similarity, among the vectors made by `model`."""

    def settle(self) -> None:
        """After many changes: what has to be done so that searches are fast, as far as it is not done by itself."""

    def found(self, chunk_ids: Sequence[str]) -> list[FoundChunk]:
        """In the order asked for, without those that are gone."""

    def close(self) -> None: ...
