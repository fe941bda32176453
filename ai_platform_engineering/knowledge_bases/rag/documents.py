"""Documents and chunks: what is kept and what is found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


def document_id(datasource: str, path: str) -> str:
    """The same for the same place, whatever is written there."""
    return f"{datasource}:{path}"


@dataclass(frozen=True, slots=True)
class Document:
    """One file or page as Markdown. `path` is its place in the datasource: a relative path with slashes, or the
    address of the page; `link` is where people read it."""

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
    """A piece of a document that is found as one. `section` is its trail of headings: `Deploy > Remote agents`."""

    document_id: str
    index: int
    section: str
    text: str

    @property
    def chunk_id(self) -> str:
        return f"{self.document_id}#{self.index}"


@dataclass(frozen=True, slots=True)
class Datasource:
    """A set of documents that came from one place (`origin`: a directory, an address, a sitemap)."""

    name: str
    origin: str
    documents: int
    chunks: int
    updated: datetime | None
