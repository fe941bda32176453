"""How many skills there are, from which sources, and what is wrong with them: for the doctor."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.sources.git_source import git_sources
from ai_platform_engineering.skills_middleware.status import SourceStatus
from ai_platform_engineering.utils.a2a_common.caller import ANONYMOUS

_MAX_PROBLEMS: Final = 10


@dataclass(frozen=True, slots=True)
class SkillsCheckup:
    """`sources` has the number of skills of each source by its name. `problems` keep single skills from being used."""

    sources: Mapping[str, int]
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        filled = ", ".join(f"{name} {count}" for name, count in self.sources.items() if count)
        total = sum(self.sources.values())
        return f"{total} ({filled})" if filled else "none"


@dataclass(frozen=True, slots=True)
class _Found:
    """Sources by name, and the names of the global skills in them."""

    sources: dict[str, SourceStatus]
    skills: frozenset[str]

    @classmethod
    def of(cls, catalog: SkillCatalog) -> Self:
        return cls(
            {source.name: source for source in catalog.status().sources}, frozenset(catalog.view(ANONYMOUS).skills)
        )

    def __or__(self, other: _Found) -> _Found:
        return _Found(self.sources | other.sources, self.skills | other.skills)


async def check_up_skills(
    settings: Settings, *, offline: bool, wanted: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> SkillsCheckup | None:
    """None where skills are switched off. `offline` contacts no Git repository and takes the copies that are here.

    `wanted` has the skills that the manifests of the agents name.
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


async def _as_loaded(catalog: SkillCatalog) -> _Found:
    """The sources as they are on this machine. Between `start` and `aclose` nothing is fetched."""
    try:
        await catalog.start()
        return _Found.of(catalog)
    finally:
        await catalog.aclose()


async def _as_fetched(settings: Settings) -> _Found:
    """The Git repositories as they are now. A refresh of the copies in DATA_DIR would change the skills in use."""
    with tempfile.TemporaryDirectory(prefix="platform-engineer-") as directory:
        elsewhere = settings.model_copy(update={"data_dir": Path(directory)})
        catalog = SkillCatalog(elsewhere, git_sources(elsewhere))
        try:
            await catalog.refresh()
            return _Found.of(catalog)
        finally:
            await catalog.aclose()


def _sentences(source: SourceStatus) -> list[str]:
    shown = [f"Skills, {source.name}: {problem}" for problem in source.problems[:_MAX_PROBLEMS]]
    hidden = len(source.problems) - len(shown)
    return [*shown, f"Skills, {source.name}: {hidden} more problems"] if hidden > 0 else shown
