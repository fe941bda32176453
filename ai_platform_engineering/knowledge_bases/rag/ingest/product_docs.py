"""The documentation of this product as a source: from the wheel, or from the repository checkout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.documents import document_id
from ai_platform_engineering.knowledge_bases.rag.source import Absent, Item, LoadedItem, SourceError
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion

DATASOURCE: Final = "platform-engineer"

_PACKAGE: Final = Path(__file__).parents[3]
# The wheel has the same files in a folder of the package.
_ROOTS: Final = (_PACKAGE / "product_docs", _PACKAGE.parent)
_README: Final = "README.md"


class ProductDocs:
    """Paths and links are relative to the repository: `docs/deploy.md`."""

    datasource: Final = DATASOURCE
    origin: Final = "the documentation of this version of platform-engineer"
    complete: Final = True

    def __init__(self) -> None:
        self._files: dict[str, Path] = {}

    def __len__(self) -> int:
        return len(self._files)

    async def items(self) -> AsyncIterator[Item]:
        self._files = await asyncio.to_thread(_files)
        for path, file in self._files.items():
            yield Item(path, partial(_load, path, file))


def product_documents() -> set[str]:
    """The ids of all product documents."""
    return {document_id(DATASOURCE, path) for path in _files()}


def _files() -> dict[str, Path]:
    for root in _ROOTS:
        pages = sorted(root.glob("docs/*.md"))
        if pages and (root / _README).is_file():
            return {page.relative_to(root).as_posix(): page for page in (root / _README, *pages)}
    raise SourceError("The documentation of platform-engineer is not installed with it; install it again.")


async def _load(path: str, file: Path, _stored: DocumentVersion | None) -> LoadedItem | Absent:
    try:
        content = await asyncio.to_thread(file.read_bytes)
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}.") from error
    return LoadedItem(content, "text/markdown", path, path)
