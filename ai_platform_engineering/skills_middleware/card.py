"""Global skills on the supervisor's agent card, as A2A skills."""

from __future__ import annotations

from itertools import islice
from typing import Final

from a2a.types.a2a_pb2 import AgentCard, AgentSkill

from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.skill import Skill
from ai_platform_engineering.utils.a2a_common.protocol import SKILL_PREFIX, SKILL_TAG

MAX_ENTRIES: Final = 50


class CardWithSkills:
    """`card` plus the current global skills. The card is public, so team and personal skills are left out."""

    def __init__(self, card: AgentCard, catalog: SkillCatalog) -> None:
        self.plain = card
        self._catalog = catalog
        self._card = card
        self._generation: int | None = None

    async def current(self) -> AgentCard:
        await self._catalog.reload_changed()
        if self._generation != self._catalog.generation:
            # Stored first: a change while the card is built leads to another build at the next request.
            self._generation = self._catalog.generation
            self._card = AgentCard()
            self._card.CopyFrom(self.plain)
            skills = self._catalog.view(ANONYMOUS).skills.values()
            self._card.skills.extend(map(_entry, islice(skills, MAX_ENTRIES)))
        return self._card


def _entry(skill: Skill) -> AgentSkill:
    return AgentSkill(
        id=f"{SKILL_PREFIX}{skill.name}",
        name=skill.name,
        description=skill.description,
        tags=[SKILL_TAG, *skill.tags],
        examples=[f"/{skill.name}"],
    )
