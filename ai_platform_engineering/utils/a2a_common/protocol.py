"""Facts of the A2A protocol that servers and clients share: which task states are last, and our resume extension."""

from __future__ import annotations

from typing import Final

from a2a.types.a2a_pb2 import AgentCard, TaskState

TERMINAL_STATES: Final = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
PARKED_STATES: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})

RESUME_EXTENSION: Final = "urn:ai-platform-engineering:a2a:resume:v1"
"""Named in the card: a subscription with the header Last-Event-ID."""


def can_resume(card: AgentCard) -> bool:
    """Whether a server is of our kind: its streams can be picked up where they broke off."""
    return any(extension.uri == RESUME_EXTENSION for extension in card.capabilities.extensions)
