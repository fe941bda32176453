"""The READMEs of the installed packages: real texts of some thousand chunks, the same for the same lock file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import distributions
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.source import Item, LoadedItem
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion

_OWN_PACKAGE: Final = "ai-platform-engineering"
_DEFAULT: Final = "text/x-rst"


class PackageReadmes:
    """A source of the READMEs, sorted by the names of their packages."""

    datasource: Final = "packages"
    origin: Final = "the installed packages"
    complete: Final = True

    def __init__(self) -> None:
        self._readmes = dict(sorted(_readmes().items()))

    def __len__(self) -> int:
        return len(self._readmes)

    async def items(self) -> AsyncIterator[Item]:
        for name, readme in self._readmes.items():
            yield Item(name, partial(_load, readme))


async def _load(readme: LoadedItem, _stored: DocumentVersion | None) -> LoadedItem:
    return readme


def _readmes() -> dict[str, LoadedItem]:
    found: dict[str, LoadedItem] = {}
    for distribution in distributions():
        name = distribution.name.lower()
        metadata, _, body = (distribution.read_text("METADATA") or "").partition("\n\n")
        if name == _OWN_PACKAGE or not body.strip():
            continue
        kinds = [line for line in metadata.splitlines() if line.startswith("Description-Content-Type:")]
        kind = kinds[0].partition(":")[2].strip() if kinds else _DEFAULT
        found[name] = LoadedItem(body.encode(errors="replace"), kind, name, f"packages/{name}")
    return found
