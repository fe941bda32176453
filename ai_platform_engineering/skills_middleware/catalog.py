"""The catalog: the skills of all sources, as they are now. Requests read snapshots; nothing is rebuilt for a change."""

from __future__ import annotations

from collections.abc import Sequence

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent
from ai_platform_engineering.skills_middleware.sources.directory import DirectorySource, library_directory
from ai_platform_engineering.skills_middleware.sources.source import Loaded, SkillGoneError, Source
from ai_platform_engineering.skills_middleware.view import SkillView, merged
from ai_platform_engineering.utils.a2a_common.caller import Caller


class SkillCatalog:
    """`start` before use, `aclose` after."""

    def __init__(self, settings: Settings, sources: Sequence[Source] | None = None) -> None:
        self._settings = settings
        self._sources: Sequence[Source] = [] if not settings.enable_skills else sources or _sources(settings)
        self._loaded: dict[str, Loaded] = {}
        self.generation = 0
        """Grows with every change of the catalog."""

    async def start(self) -> None:
        await self.refresh()

    async def aclose(self) -> None:
        pass

    async def refresh(self) -> None:
        """Load every source again."""
        self._loaded = {source.name: await source.load() for source in self._sources}
        self.generation += 1

    async def settle(self) -> None:
        """Take over changes that other processes have made. Called at the start of every turn, so it is cheap."""

    def view(self, caller: Caller) -> SkillView:
        """The skills that `caller` may see."""
        return merged((loaded.skills for loaded in self._loaded.values()), caller)

    async def content(self, skill: Skill) -> SkillContent:
        """The instructions and files of a skill; raises `SkillGoneError` when it has been removed meanwhile."""
        for source in self._sources:
            if skill in self._loaded.get(source.name, Loaded()).skills:
                return await source.content(skill)
        raise SkillGoneError(skill.name)


def _sources(settings: Settings) -> list[Source]:
    sources: list[Source] = [DirectorySource(library_directory(), "built-in", "built-in")]
    if settings.skills_dir is not None:
        sources.append(DirectorySource(settings.skills_dir))
    return sources
