"""A snapshot of the catalog: the skills of every source, and the views of callers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.skills_middleware.search_index import SearchIndex
from ai_platform_engineering.skills_middleware.skill import GLOBAL, Access, Skill, SkillProblem, visible_accesses
from ai_platform_engineering.skills_middleware.sources.source import LoadedSkills
from ai_platform_engineering.skills_middleware.view import SkillView, merge_sources

_MAX_VIEWS: Final = 64

ContentKey = tuple[str, Access, str]


def content_key(skill: Skill) -> ContentKey:
    """Skills with the same name, access and digest have the same contents, also in different sources."""
    return skill.name, skill.access, skill.digest


@dataclass(frozen=True, slots=True)
class SourceState:
    """The skills that a source loaded last, and the problem if it cannot be read now."""

    loaded: LoadedSkills = field(default_factory=LoadedSkills)
    loaded_at: datetime | None = None
    unavailable: SkillProblem | None = None

    @property
    def problems(self) -> tuple[SkillProblem, ...]:
        return self.loaded.problems if self.unavailable is None else (self.unavailable, *self.loaded.problems)


class CatalogSnapshot:
    """Immutable except for its cache of views. Built in a thread, because indexing thousands of skills is slow."""

    def __init__(self, sources: Mapping[str, tuple[Skill, ...]]) -> None:
        """`sources` has the skills by source name. Later sources override earlier ones."""
        self._sources = sources
        self._source_names = {content_key(skill): name for name, skills in sources.items() for skill in skills}
        everything = [skill for skills in sources.values() for skill in skills]
        self._restricted = {skill.access for skill in everything} - {GLOBAL}
        self._index = SearchIndex(everything)
        self._views: OrderedDict[frozenset[Access], SkillView] = OrderedDict()

    def view(self, caller: Principal) -> SkillView:
        """The caller's view. Callers who see the same skills share one; if all skills are global, all callers do."""
        access = visible_accesses(caller) & self._restricted
        if (view := self._views.get(access)) is None:
            view = self._views[access] = merge_sources(self._sources.values(), caller, self._index)
            if len(self._views) > _MAX_VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(access)
        return view

    def source_name(self, skill: Skill) -> str | None:
        """The source of the skill; None if the skill has been removed or changed."""
        return self._source_names.get(content_key(skill))
