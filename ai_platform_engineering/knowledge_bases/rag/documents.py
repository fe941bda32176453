"""The values that are stored and found: documents, their chunks, and datasources."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


def document_id(datasource: str, path: str) -> str:
    """Does not depend on the content of the document."""
    return f"{datasource}:{path}"


def datasource_of(document_id: str) -> str:
    return document_id.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Document:
    """One file or page as Markdown. `path` is unique in the datasource: a relative path with slashes, or the URL of the
    page. `link` is the address where people read it."""

    datasource: str
    path: str
    title: str
    text: str
    link: str
    updated: datetime | None = None

    @property
    def document_id(self) -> str:
        return document_id(self.datasource, self.path)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The part of a document that a search finds. `section` is its trail of headings: `Deploy > Remote agents`."""

    document_id: str
    index: int
    section: str
    text: str

    @property
    def chunk_id(self) -> str:
        return f"{self.document_id}#{self.index}"


@dataclass(frozen=True, slots=True)
class Datasource:
    """The documents of one `origin`: a directory, a URL or a sitemap."""

    name: str
    origin: str
    documents: int
    chunks: int
    updated: datetime | None
