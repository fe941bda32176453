"""What need not be stored of a run, because a process that continues the run can have it otherwise.

A process that dies before the next checkpoint repeats the step, as it does when it dies just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint, CheckpointMetadata, CheckpointTuple

from ai_platform_engineering.compat.langgraph import ends_graph, is_before_start, is_only_task_of_step, sent_tasks


def ends_nested_graph(config: RunnableConfig, checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is the last one of a nested graph, whose result is in the outer one."""
    return bool(config["configurable"].get("checkpoint_ns")) and ends_graph(checkpoint)


def can_be_restored(checkpoint: Checkpoint, metadata: CheckpointMetadata, parent: CheckpointTuple | None) -> bool:
    """Whether a checkpoint adds nothing to its parent but the input, which is sent again, or results that are stored
    with the parent one by one.

    `parent` has the pending writes that are stored; None if it is not known.
    """
    if metadata.get("source") == "input":
        return True
    if metadata.get("source") != "loop" or parent is None or ends_graph(checkpoint):
        return False
    return is_before_start(parent.checkpoint) or _has_all_results(parent)


def _has_all_results(stored: CheckpointTuple) -> bool:
    finished = {task_id for task_id, channel, _ in stored.pending_writes or () if channel not in WRITES_IDX_MAP}
    return 0 < sent_tasks(stored.checkpoint) == len(finished)


def are_in_next_checkpoint(writes: Sequence[tuple[str, Any]], task_path: str) -> bool:
    """Whether writes are the result of a whole step. Only a step with several tasks needs the result of each.

    Results of tool calls are always stored, also that of a single one: a run that is continued reads from them which
    tasks made the calls (`graphs/stored_run.py`).
    """
    return is_only_task_of_step(task_path) and not any(channel in WRITES_IDX_MAP for channel, _ in writes)
