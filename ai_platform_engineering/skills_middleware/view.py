"""The catalog as one caller sees it. Access is checked first; among visible skills of a name the last source wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Final

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.skills_middleware.search_index import SearchIndex
from ai_platform_engineering.skills_middleware.skill import Skill, Visibility, visible_accesses

_RANKS: Final[Mapping[Visibility, int]] = {"global": 0, "team": 1, "personal": 2}


@dataclass(frozen=True, slots=True)
class Overridden:
    """A skill that is hidden by another one of the same name, and the reason."""

    skill: Skill
    reason: str


@dataclass(frozen=True, slots=True)
class SkillView:
    """`skills` has the skills in effect by name; `overridden` has the hidden ones. `index` may contain more skills."""

    skills: Mapping[str, Skill]
    overridden: Mapping[str, tuple[Overridden, ...]]
    index: SearchIndex | None = field(default=None, repr=False, compare=False)

    def without(self, names: frozenset[str]) -> SkillView:
        """The view without skills of these names."""
        skills = {name: skill for name, skill in self.skills.items() if name not in names}
        overridden = {name: hidden for name, hidden in self.overridden.items() if name not in names}
        return SkillView(skills, overridden, self.index)

    def near(self, name: str, limit: int = 3) -> list[str]:
        """Existing names that are similar to `name`, the most similar first."""
        return get_close_matches(name, self.skills, limit, cutoff=0.6)

    def search(self, query: str, limit: int | None = None) -> list[Skill]:
        """Skills whose name, tags or description contain words of the query, best match first."""
        index = self.index or SearchIndex(self.skills.values())
        visible = (skill for skill in index.search(query) if self.skills.get(skill.name) is skill)
        return list(islice(visible, limit))


def merge_sources(sources: Iterable[Iterable[Skill]], caller: Principal, index: SearchIndex | None = None) -> SkillView:
    """Merge the skills of all sources for one caller. Later sources override earlier ones.

    `index` covers all of the skills; without it, each search builds an index.
    """
    accesses = visible_accesses(caller)
    skills: dict[str, Skill] = {}
    overridden: dict[str, tuple[Overridden, ...]] = {}
    for source in sources:
        visible = (skill for skill in source if skill.access in accesses)
        for skill in sorted(visible, key=lambda each: _RANKS[each.access.visibility]):
            if (hidden := skills.get(skill.name)) is not None:
                reason = _reason(hidden, skill)
                overridden[skill.name] = (*overridden.get(skill.name, ()), Overridden(hidden, reason))
            skills[skill.name] = skill
    return SkillView(dict(sorted(skills.items())), overridden, index)


def _reason(hidden: Skill, winner: Skill) -> str:
    if hidden.provenance.kind == winner.provenance.kind and hidden.access != winner.access:
        return f"the {winner.access.visibility} skill of this name overrides the {hidden.access.visibility} one"
    return f"the source {winner.provenance.kind} comes after {hidden.provenance.kind}"
