"""A2A conventions that servers and clients share: groups of task states, the resume extension, card entries."""

from __future__ import annotations

from typing import Final

from a2a.types.a2a_pb2 import AgentCard, AgentSkill, TaskState

TERMINAL_STATES: Final = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
WAITING_STATES: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
"""The task waits for a person."""

RESUME_EXTENSION: Final = "urn:ai-platform-engineering:a2a:resume:v1"
"""Extension in the agent card: a subscription with the header Last-Event-ID resumes a stream."""

SKILL_PREFIX: Final = "skill-"
SKILL_TAG: Final = "skill"


def can_resume(card: AgentCard) -> bool:
    """Whether the server can resume a broken stream. True for every server of this product."""
    return any(extension.uri == RESUME_EXTENSION for extension in card.capabilities.extensions)


def agents_on(card: AgentCard) -> list[AgentSkill]:
    """The entries of a supervisor's card that are agents or the knowledge base, without those of the skill catalog."""
    return [entry for entry in card.skills if not _is_skill(entry)]


def _is_skill(entry: AgentSkill) -> bool:
    # An agent may have the tag as a keyword, or a name that starts with the prefix; only a skill has both.
    return entry.id.startswith(SKILL_PREFIX) and SKILL_TAG in entry.tags
