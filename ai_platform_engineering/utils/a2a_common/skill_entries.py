"""The entries of an agent card: some are agents, some are skills of the catalog."""

from __future__ import annotations

from typing import Final

from a2a.types.a2a_pb2 import AgentCard, AgentSkill

SKILL_PREFIX: Final = "skill-"
SKILL_TAG: Final = "skill"


def agents_on(card: AgentCard) -> list[AgentSkill]:
    """The entries of a supervisor's card that stand for agents and the knowledge base."""
    return [entry for entry in card.skills if not _is_skill(entry)]


def _is_skill(entry: AgentSkill) -> bool:
    # The tag alone could be an agent's keyword, the id alone an agent's name.
    return entry.id.startswith(SKILL_PREFIX) and SKILL_TAG in entry.tags
