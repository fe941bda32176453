"""One state of the catalog: what every source has loaded, and the views of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ai_platform_engineering.skills_middleware.access import visible_accesses
from ai_platform_engineering.skills_middleware.problems import Problem
from ai_platform_engineering.skills_middleware.search_index import SearchIndex
from ai_platform_engineering.skills_middleware.skill import GLOBAL, Access, Skill
from ai_platform_engineering.skills_middleware.sources.source import Loaded
from ai_platform_engineering.skills_middleware.view import SkillView, merged
from ai_platform_engineering.utils.a2a_common.caller import Caller

_MAX_VIEWS: Final = 64

ContentKey = tuple[str, Access, str]


def content_key(skill: Skill) -> ContentKey:
    """Skills with the same name, access and digest have the same contents, whatever their source."""
    return skill.name, skill.access, skill.digest


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a source loaded last, and the reason where it cannot be read now."""

    loaded: Loaded = field(default_factory=Loaded)
    loaded_at: datetime | None = None
    unavailable: Problem | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.loaded.problems if self.unavailable is None else (self.unavailable, *self.loaded.problems)


class Snapshot:
    """Immutable but for its cache of views. Built in a thread, as indexing thousands of skills takes a while."""

    def __init__(self, sources: Mapping[str, tuple[Skill, ...]]) -> None:
        """`sources` are the skills by the name of their source, in the order in which sources override each other."""
        self._sources = sources
        self._source_names = {content_key(skill): name for name, skills in sources.items() for skill in skills}
        everything = [skill for skills in sources.values() for skill in skills]
        self._restricted = {skill.access for skill in everything} - {GLOBAL}
        self._index = SearchIndex(everything)
        self._views: OrderedDict[frozenset[Access], SkillView] = OrderedDict()

    def view(self, caller: Caller) -> SkillView:
        """Callers who see the same skills share a view: all of them where every skill is global."""
        access = visible_accesses(caller) & self._restricted
        if (view := self._views.get(access)) is None:
            view = self._views[access] = merged(self._sources.values(), caller, self._index)
            if len(self._views) > _MAX_VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(access)
        return view

    def source_name(self, skill: Skill) -> str | None:
        """The source that has the skill with these contents; None when it has been removed or changed."""
        return self._source_names.get(content_key(skill))
