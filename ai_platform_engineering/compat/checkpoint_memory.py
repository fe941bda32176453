"""LangGraph's `InMemorySaver`: trims a conversation inside its undocumented tables.

The public interface could only copy a conversation, and would decode and encode all its messages after every run. Each
saver here holds one conversation.

The tables: `storage[thread][namespace][checkpoint id]` has the encoded checkpoint, its metadata and the parent's id;
`writes[(thread, namespace, checkpoint id)]` the pending writes; `blobs[(thread, namespace, channel, version)]` values.
"""

from __future__ import annotations

from typing import Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL, DependencyChangedError

_ROOT: Final = ""


def check_tables() -> None:
    """Raise unless a stored checkpoint is in the tables as described above."""
    saver = InMemorySaver()
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": _ROOT}}
    checkpoint = empty_checkpoint() | {"channel_values": {"c": 1}, "channel_versions": {"c": "1"}}
    stored = saver.put(config, checkpoint, {}, {"c": "1"})
    saver.put_writes(stored, [(INTERRUPT_CHANNEL, 2)], "task")
    try:
        place = ("t", _ROOT, checkpoint["id"])
        is_known = (
            [*saver.storage["t"][_ROOT]] == [checkpoint["id"]]
            and "channel_versions" in saver.serde.loads_typed(saver.storage["t"][_ROOT][checkpoint["id"]][0])
            and [channel for _, channel, _, _ in saver.writes[place].values()] == [INTERRUPT_CHANNEL]
            and [*saver.blobs] == [("t", _ROOT, "c", "1")]
        )
    except (AttributeError, LookupError, TypeError, ValueError):
        is_known = False
    if not is_known:
        change = "InMemorySaver has other tables than storage, writes and blobs, or other contents in them"
        raise DependencyChangedError("langgraph-checkpoint", change, "checkpoint_memory.py")


def last_id(saver: InMemorySaver, thread_id: str) -> str:
    """The id of the last checkpoint of the conversation; empty if it has none."""
    return max(saver.storage[thread_id][_ROOT], default="")


def has_interrupt(saver: InMemorySaver, thread_id: str) -> bool:
    """Whether the last checkpoint of the conversation waits for an answer."""
    last = max(saver.storage[thread_id][_ROOT], default=None)
    if last is None:
        return False
    return any(channel == INTERRUPT_CHANNEL for _, channel, _, _ in saver.writes[(thread_id, _ROOT, last)].values())


def keep_latest(saver: InMemorySaver, thread_id: str) -> None:
    """Delete everything but the last checkpoint of the conversation, its pending writes and its values."""
    namespaces = saver.storage[thread_id]
    if not (checkpoints := namespaces[_ROOT]):
        return
    last = max(checkpoints)
    versions = saver.serde.loads_typed(checkpoints[last][0])["channel_versions"]
    _delete_nested(saver, thread_id)
    namespaces[_ROOT] = {last: checkpoints[last]}
    for key in [key for key in saver.writes if key != (thread_id, _ROOT, last)]:
        del saver.writes[key]
    for blob in [*saver.blobs]:
        _, namespace, channel, version = blob
        if namespace or versions.get(channel) != version:
            del saver.blobs[blob]


def drop_interrupt(saver: InMemorySaver, thread_id: str) -> None:
    """Delete the pending writes of the last checkpoint, and the checkpoints of nested graphs."""
    if not (namespaces := saver.storage[thread_id]):
        return
    last = max(namespaces[_ROOT], default="")
    for key in [key for key in saver.writes if key[1] or key[2] == last]:
        del saver.writes[key]
    _delete_nested(saver, thread_id)


def _delete_nested(saver: InMemorySaver, thread_id: str) -> None:
    namespaces = saver.storage[thread_id]
    for namespace in [*namespaces]:
        if namespace:
            del namespaces[namespace]
