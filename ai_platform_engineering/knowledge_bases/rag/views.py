"""Documents and datasources in the shape in which models and REST callers see them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pydantic import BaseModel

from ai_platform_engineering.knowledge_bases.rag.documents import Datasource, Document


class DocumentView(BaseModel):
    """A whole document; `link` is where people read it."""

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
        """The text under a few lines that say what it is."""
        lines = [f"Title: {self.title}", f"Document: {self.document_id}", f"Source: {self.link}"]
        if self.updated is not None:
            lines.append(f"Updated: {self.updated.isoformat(timespec='seconds')}")
        return "\n".join([*lines, "", self.text])


class WebPageView(BaseModel):
    """A web page, read now and kept nowhere. `url` is where it was found, after redirects."""

    title: str
    url: str
    text: str

    def page(self) -> str:
        return f"Title: {self.title}\nSource: {self.url}\n\n{self.text}"


class DatasourceView(BaseModel):
    """A set of documents that came from one place (`origin`)."""

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
