"""Documents, web pages and datasources, as models and REST callers see them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from ai_platform_engineering.knowledge_bases.rag.documents import Datasource, Document

UploadState = Literal["added", "updated", "unchanged"]


class DocumentView(BaseModel):
    """A whole document. `link` is the address where people read it."""

    document_id: str
    title: str
    datasource: str
    link: str
    updated: datetime | None = None
    text: str

    @classmethod
    def of(cls, document: Document) -> DocumentView:
        return cls(
            document_id=document.document_id,
            title=document.title,
            datasource=document.datasource,
            link=document.link,
            updated=document.updated,
            text=document.text,
        )

    def page(self) -> str:
        """The text, below a header with its title, id and link."""
        lines = [f"Title: {self.title}", f"Document: {self.document_id}", f"Source: {self.link}"]
        return _page(lines, self.updated, self.text)


class WebPageView(BaseModel):
    """A web page that was read now and is not stored. `url` is its address after redirects."""

    title: str
    url: str
    updated: datetime | None = None
    text: str

    def page(self) -> str:
        return _page([f"Title: {self.title}", f"Source: {self.url}"], self.updated, self.text)


class UploadResult(BaseModel):
    """The outcome of an upload."""

    document_id: str
    state: UploadState


class DatasourceView(BaseModel):
    """The documents of one `origin`: a directory, a URL or a sitemap."""

    name: str
    origin: str
    documents: int
    chunks: int
    updated: datetime | None = None


class DatasourcesView(BaseModel):
    datasources: list[DatasourceView]

    @classmethod
    def of(cls, datasources: Iterable[Datasource]) -> DatasourcesView:
        return cls(
            datasources=[
                DatasourceView(
                    name=datasource.name,
                    origin=datasource.origin,
                    documents=datasource.documents,
                    chunks=datasource.chunks,
                    updated=datasource.updated,
                )
                for datasource in datasources
            ]
        )


def _page(lines: list[str], updated: datetime | None, text: str) -> str:
    if updated is not None:
        lines.append(f"Updated: {updated.isoformat(timespec='seconds')}")
    return "\n".join([*lines, "", text])
