"""The check of skills for `doctor`: how many each source has, which problems they have, and the store of the API."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog, SourceStatus, skill_store, skills_file
from ai_platform_engineering.skills_middleware.sources.git_source import git_sources
from ai_platform_engineering.skills_middleware.store.store import SkillStoreError
from ai_platform_engineering.storage.checkup import StoreCheckup

_MAX_PROBLEMS: Final = 10
_STORE_NAME: Final = "store of skills"


@dataclass(frozen=True, slots=True)
class SkillsCheckup:
    """`sources` has the number of skills by source name. `problems` are sentences about skills that cannot be used."""

    sources: Mapping[str, int]
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        filled = ", ".join(f"{name} {count}" for name, count in self.sources.items() if count)
        total = sum(self.sources.values())
        return f"{total} ({filled})" if filled else "none"


@dataclass(frozen=True, slots=True)
class _CatalogContents:
    """The sources of a catalog by name, and the names of its global skills."""

    sources: dict[str, SourceStatus]
    skills: frozenset[str]

    @classmethod
    def of(cls, catalog: SkillCatalog) -> Self:
        return cls(
            {source.name: source for source in catalog.status().sources}, frozenset(catalog.view(ANONYMOUS).skills)
        )

    def __or__(self, other: _CatalogContents) -> _CatalogContents:
        return _CatalogContents(self.sources | other.sources, self.skills | other.skills)


async def check_up_skill_store(settings: Settings) -> StoreCheckup | None:
    """The store of skills that were created through the API; None if skills are disabled."""
    if not settings.enable_skills:
        return None
    if settings.skills_database_url is None:
        row = await asyncio.to_thread(StoreCheckup.of_file, _STORE_NAME, skills_file(settings))
        if not row.exists:
            return row
    else:
        row = StoreCheckup(_STORE_NAME, "postgres", _postgres_place(settings.skills_database_url.get_secret_value()))
    store = skill_store(settings)
    try:
        return row.opened(skills=len(await store.load()))
    except SkillStoreError as error:
        return row.failed(str(error))
    finally:
        await store.aclose()


def _postgres_place(url: str) -> str:
    """Without credentials; the name of the setting if the address cannot be parsed."""
    from ai_platform_engineering.skills_middleware.store.postgres import SkillsAddress  # noqa: PLC0415 - slow to load

    try:
        return SkillsAddress(url).place
    except SkillStoreError:
        return SkillsAddress.setting


async def check_up_skills(
    settings: Settings, *, offline: bool, wanted: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> SkillsCheckup | None:
    """Check all sources; None if skills are disabled.

    With `offline`, Git repositories are not contacted and the local copies are checked. `wanted` has the skills that
    the manifests of the agents name, by agent.
    """
    if not settings.enable_skills:
        return None
    found = await _as_loaded(SkillCatalog(settings))
    if settings.skills_git and not offline:
        found |= await _as_fetched(settings)
    unknown = (
        f"Skills, {agent}: its manifest names {name!r}, and no source has a global skill of that name"
        for agent, names in wanted.items()
        for name in names
        if name not in found.skills
    )
    return SkillsCheckup(
        {source.name: source.count for source in found.sources.values()},
        (*(sentence for source in found.sources.values() for sentence in _sentences(source)), *unknown),
    )


async def _as_loaded(catalog: SkillCatalog) -> _CatalogContents:
    """The sources as loaded from this machine, without fetching anything."""
    try:
        await catalog.start()
        return _CatalogContents.of(catalog)
    finally:
        await catalog.aclose()


async def _as_fetched(settings: Settings) -> _CatalogContents:
    """The Git repositories, fetched to a temporary directory: refreshing DATA_DIR would change the skills in use."""
    with tempfile.TemporaryDirectory(prefix="platform-engineer-") as directory:
        elsewhere = settings.model_copy(update={"data_dir": Path(directory)})
        catalog = SkillCatalog(elsewhere, git_sources(elsewhere))
        try:
            await catalog.refresh()
            return _CatalogContents.of(catalog)
        finally:
            await catalog.aclose()


def _sentences(source: SourceStatus) -> list[str]:
    shown = [f"Skills, {source.name}: {problem}" for problem in source.problems[:_MAX_PROBLEMS]]
    hidden = len(source.problems) - len(shown)
    return [*shown, f"Skills, {source.name}: {hidden} more problems"] if hidden > 0 else shown
