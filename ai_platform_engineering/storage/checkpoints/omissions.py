"""What is not stored of a run, because the next checkpoint follows at once and contains it.

A process that dies in between repeats the step, as it does when it dies just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointMetadata

from ai_platform_engineering.compat.langgraph import is_only_task_of_step


def is_followed_at_once(metadata: CheckpointMetadata) -> bool:
    """Whether a checkpoint is that of the input: the one after the input's step has all its values."""
    return metadata.get("source") == "input"


def are_in_next_checkpoint(writes: Sequence[tuple[str, Any]], task_path: str) -> bool:
    """Whether writes are the result of a whole step. Only a step with several tasks needs the result of each."""
    return is_only_task_of_step(task_path) and not any(channel in WRITES_IDX_MAP for channel, _ in writes)
