"""The interface of stores, and the values that they take and return."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Datasource, Document
from ai_platform_engineering.utils.errors import ReadableError

Vector = Sequence[float]


class KnowledgeStoreError(ReadableError):
    """The store cannot be used: which one, why, and the way out. Never contains the password of an address."""


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """The stored state of a document. `fingerprint` changes with everything that would change its chunks or vectors.
    `revision` is the source's own name for this state (an ETag), if it has one."""

    fingerprint: str
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Limits a search. All conditions that are set must hold."""

    datasource: str | None = None
    document_id: str | None = None
    path_prefix: str | None = None
    updated_after: datetime | None = None
    visible: tuple[str, ...] | None = None
    """The datasources that the caller may see."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found. Higher scores are better. Scores of different kinds of search do not compare."""

    chunk_id: str
    score: float


@dataclass(frozen=True, slots=True)
class FoundChunk:
    chunk: Chunk
    datasource: str
    title: str
    link: str
    updated: datetime | None


class KnowledgeStore(Protocol):
    """Thread-safe. Several processes can use the same store.

    Hits come best first. Equal scores are ordered by chunk id, so the same content always gives the same results,
    whatever the order in which it was stored.
    """

    def datasources(self) -> list[Datasource]: ...

    def versions(self, datasource: str) -> Mapping[str, DocumentVersion]:
        """The versions of all documents of the datasource, by document id."""

    def put(
        self,
        document: Document,
        version: DocumentVersion,
        chunks: Sequence[Chunk],
        vectors: Sequence[Vector] | None,
        model: str,
    ) -> None:
        """Store the document in place of its earlier version, in one transaction.

        `vectors` has one unit vector of `model` for each chunk. None stores the chunks without vectors.
        """

    def update_version(self, document_id: str, version: DocumentVersion) -> None:
        """The content is unchanged, but its source uses another revision now."""

    def set_origin(self, datasource: str, origin: str) -> None:
        """Creates the datasource if it does not exist."""

    def remove(self, document_ids: Collection[str]) -> None: ...

    def remove_datasource(self, name: str) -> bool:
        """False if it does not exist."""

    def document(self, document_id: str) -> Document | None: ...

    def lexical(self, query: str, count: int, scope: Scope) -> list[Hit]:
        """BM25 over title, section and text. Chunks without any of the words are not returned."""

    def nearest(self, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        """By cosine similarity, among the vectors of `model`."""

    def optimize(self) -> None:
        """Called after many changes. Updates the statistics that fast searches need."""

    def load_chunks(self, chunk_ids: Sequence[str]) -> list[FoundChunk]:
        """In the order of the ids. Chunks that do not exist are left out."""

    def close(self) -> None: ...
