"""Migrates the file of an agent that has only conversations with an open form, as earlier versions wrote it.

The file of release 0.1.0 has no format version. Its table `waiting` has one row per conversation. `body` is a msgpack
list of the three tables of LangGraph's `InMemorySaver` of that time: checkpoints, pending writes, and channel values.
In format 1 `waiting` only lists the conversations, whose checkpoints are in the tables of `SqliteSaver` already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

from ai_platform_engineering.storage.checkpoints.copying import put_checkpoints


class UnreadableConversationError(Exception):
    pass


def migrate_pending_forms(saver: SqliteSaver) -> None:
    """Write the conversations of a file of pending forms to the saver's tables.

    The table `waiting` is dropped last, with the caller's commit: a migration that is cut off is done again.
    """
    connection = saver.conn
    columns = {row[1] for row in connection.execute("PRAGMA table_info(waiting)")}
    if "body" in columns:
        rows = connection.execute("SELECT conversation, body FROM waiting").fetchall()
        for checkpoints in [_read(conversation, body, saver.serde) for conversation, body in rows]:
            put_checkpoints(saver, checkpoints)
    connection.execute("DROP TABLE IF EXISTS waiting")


def _read(conversation: str, body: bytes, serde: SerializerProtocol) -> list[CheckpointTuple]:
    try:
        return _checkpoints(bytes(body), serde)
    except Exception as error:  # msgpack and LangGraph's serializer raise errors of many classes
        raise UnreadableConversationError(f"the conversation {conversation} in it cannot be read") from error


def _checkpoints(body: bytes, serde: SerializerProtocol) -> list[CheckpointTuple]:
    states, writes, blobs = serde.loads_typed(("msgpack", body))
    values = {
        (thread_id, namespace, channel, version): serde.loads_typed((kind, value))
        for thread_id, namespace, channel, version, kind, value in blobs
        if kind != "empty"
    }
    checkpoints = []
    for thread_id, namespace, checkpoint_id, kind, encoded, metadata_kind, metadata, parent_id in states:
        checkpoint = serde.loads_typed((kind, encoded))
        versions = checkpoint["channel_versions"].items()
        places = {channel: (thread_id, namespace, channel, version) for channel, version in versions}
        checkpoint["channel_values"] = {channel: values[place] for channel, place in places.items() if place in values}
        checkpoints.append(
            CheckpointTuple(
                config=_config(thread_id, namespace, checkpoint_id),
                checkpoint=checkpoint,
                metadata=serde.loads_typed((metadata_kind, metadata)),
                parent_config=_config(thread_id, namespace, parent_id) if parent_id else None,
                pending_writes=_pending(writes, (thread_id, namespace, checkpoint_id), serde),
            )
        )
    return checkpoints


def _pending(
    writes: Sequence[Sequence[Any]], checkpoint: tuple[str, str, str], serde: SerializerProtocol
) -> list[tuple[str, str, Any]]:
    """The pending writes of a checkpoint, sorted as LangGraph's savers sort them."""
    found = [
        ((path, task_id, index), (task_id, channel, serde.loads_typed((kind, value))))
        for *place, task_id, index, channel, kind, value, path in writes
        if tuple(place) == checkpoint
    ]
    return [write for _, write in sorted(found, key=lambda item: item[0])]


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}
