"""Copies checkpoints from one LangGraph saver to another, with their pending writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple


def put_checkpoints(saver: BaseCheckpointSaver[Any], checkpoints: Iterable[CheckpointTuple]) -> None:
    """Copy checkpoints of another saver."""
    for stored in checkpoints:
        parent = stored.parent_config["configurable"]["checkpoint_id"] if stored.parent_config else None
        config: RunnableConfig = {"configurable": {**stored.config["configurable"], "checkpoint_id": parent}}
        saver.put(config, stored.checkpoint, stored.metadata, stored.checkpoint["channel_versions"])
        for path, task_id, writes in pending_writes_by_task(stored):
            saver.put_writes(stored.config, writes, task_id, path)


def pending_writes_by_task(stored: CheckpointTuple) -> list[tuple[str, str, list[tuple[str, Any]]]]:
    """Path, id and writes of each task with pending writes."""
    by_task: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in stored.pending_writes or ():
        by_task.setdefault(task_id, []).append((channel, value))
    # Savers sort pending writes by task path, which a tuple does not have: numbers keep their order.
    return [(f"{number:06}", task_id, writes) for number, (task_id, writes) in enumerate(by_task.items())]


def after_earlier(earlier: CheckpointTuple | None, checkpoints: list[CheckpointTuple]) -> list[CheckpointTuple]:
    """The checkpoints of a conversation that continued without its history, with the earlier messages in front."""
    before = earlier.checkpoint["channel_values"].get("messages") if earlier is not None else None
    if not before:
        return checkpoints
    ids = {message.id for message in before}
    merged = []
    for found in checkpoints:
        values = found.checkpoint["channel_values"]
        if not found.config["configurable"].get("checkpoint_ns") and isinstance(values.get("messages"), list):
            messages = [*before, *(message for message in values["messages"] if message.id not in ids)]
            merged.append(found._replace(checkpoint=_with_values(found.checkpoint, {**values, "messages": messages})))
        else:
            merged.append(found)
    return merged


def _with_values(checkpoint: Checkpoint, values: dict[str, Any]) -> Checkpoint:
    changed = checkpoint.copy()
    changed["channel_values"] = values
    return changed
