"""A2A conventions that servers and clients share: groups of task states, the resume extension, card entries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, cast

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

STATE_NAMES: Final[Mapping[TaskState, str]] = MappingProxyType(
    {
        cast("TaskState", value): name.removeprefix("TASK_STATE_").lower().replace("_", "-")
        for name, value in TaskState.items()
        if value != TaskState.TASK_STATE_UNSPECIFIED
    }
)
"""The names of task states for people and in JSON: `input-required`."""

RESUME_EXTENSION: Final = "urn:ai-platform-engineering:a2a:resume:v1"
"""Extension in the agent card: a subscription with the header Last-Event-ID resumes a stream."""

ONCE_EXTENSION: Final = "urn:ai-platform-engineering:a2a:once:v1"
"""Extension in the agent card: a message with the id of an earlier message of its conversation starts nothing. Its
sender gets the task and the events of the earlier one, also after a restart of the server."""

SANDBOX_EXTENSION: Final = "urn:ai-platform-engineering:a2a:sandbox:v1"
"""Extension in the agent card: the agent's tools are those of the sandbox, so others cannot write its texts."""

SERVER_STOPPING: Final[Mapping[str, str]] = MappingProxyType({"server": "stopping"})
"""The metadata of the error for a message that came while the server was stopping."""

OVER_BUDGET: Final[Mapping[str, str]] = MappingProxyType({"error_code": "budget"})
"""The metadata of the error for a message that is not accepted because a budget of its sender is used up."""

SKILL_PREFIX: Final = "skill-"
SKILL_TAG: Final = "skill"


def can_resume(card: AgentCard) -> bool:
    """Whether the server can resume a broken stream. True for every server of this product."""
    return _has_extension(card, RESUME_EXTENSION)


def accepts_once(card: AgentCard) -> bool:
    """Whether a message can be sent again without starting its work twice."""
    return _has_extension(card, ONCE_EXTENSION)


def is_sandbox(card: AgentCard) -> bool:
    return _has_extension(card, SANDBOX_EXTENSION)


def agents_on(card: AgentCard) -> list[AgentSkill]:
    """The entries of a supervisor's card that are agents or the knowledge base, without those of the skill catalog."""
    return [entry for entry in card.skills if not _is_skill(entry)]


def _has_extension(card: AgentCard, uri: str) -> bool:
    return any(extension.uri == uri for extension in card.capabilities.extensions)


def _is_skill(entry: AgentSkill) -> bool:
    # An agent may have the tag as a keyword, or a name that starts with the prefix; only a skill has both.
    return entry.id.startswith(SKILL_PREFIX) and SKILL_TAG in entry.tags
