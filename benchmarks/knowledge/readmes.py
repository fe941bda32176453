"""The READMEs of the installed packages: real texts of some thousand chunks, the same ones wherever the lock is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import distributions
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.source import Item, Loaded
from ai_platform_engineering.knowledge_bases.rag.stores.store import Known

_OUR_OWN: Final = "ai-platform-engineering"
_DEFAULT: Final = "text/x-rst"


class PackageReadmes:
    """A source of them, in the order of their names."""

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


async def _load(readme: Loaded, _known: Known | None) -> Loaded:
    return readme


def _readmes() -> dict[str, Loaded]:
    found: dict[str, Loaded] = {}
    for distribution in distributions():
        name = distribution.name.lower()
        metadata, _, body = (distribution.read_text("METADATA") or "").partition("\n\n")
        if name == _OUR_OWN or not body.strip():
            continue
        kinds = [line for line in metadata.splitlines() if line.startswith("Description-Content-Type:")]
        kind = kinds[0].partition(":")[2].strip() if kinds else _DEFAULT
        found[name] = Loaded(body.encode(errors="replace"), kind, name, f"packages/{name}")
    return found
