"""What is not stored of a run, because the next checkpoint follows at once and contains it.

A process that dies in between repeats the step, as it does when it dies just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint, CheckpointMetadata

from ai_platform_engineering.compat.langgraph import ends_graph, is_only_task_of_step


def is_followed_at_once(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> bool:
    """Whether a checkpoint is that of the input, or the last one of a nested graph.

    The checkpoint after the input's step has all its values. The result of a nested graph is in the outer one.
    """
    is_nested = bool(config["configurable"].get("checkpoint_ns"))
    return metadata.get("source") == "input" or (is_nested and ends_graph(checkpoint))


def are_in_next_checkpoint(writes: Sequence[tuple[str, Any]], task_path: str) -> bool:
    """Whether writes are the result of a whole step. Only a step with several tasks needs the result of each.

    Results of tool calls are always stored, also that of a single one: a run that is continued reads from them which
    tasks made the calls (`graphs/stored_run.py`).
    """
    return is_only_task_of_step(task_path) and not any(channel in WRITES_IDX_MAP for channel, _ in writes)
