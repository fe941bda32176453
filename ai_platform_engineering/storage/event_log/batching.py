"""Which events are committed in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from a2a.types.a2a_pb2 import TaskArtifactUpdateEvent, TaskStatusUpdateEvent

BATCH_SECONDS: Final = 0.005
"""Text is joined for longer than that before it is written."""


def can_wait(events: Sequence[TaskStatusUpdateEvent | TaskArtifactUpdateEvent]) -> bool:
    """Whether events may be committed some milliseconds later, together with others. A run waits for its first status
    to be committed, and people for its last."""
    return not any(isinstance(event, TaskStatusUpdateEvent) for event in events)
