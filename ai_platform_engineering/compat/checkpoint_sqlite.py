"""LangGraph's `SqliteSaver`: its tables, written and trimmed with SQL, and the time in its checkpoint ids.

`setup` and `cursor` of the saver are declared internal, and the tables are not documented. There is no public way to
delete some checkpoints of a conversation.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, get_checkpoint_metadata
from langgraph.checkpoint.sqlite import SqliteSaver

from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL, DependencyChangedError

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "checkpoints": (
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "parent_checkpoint_id",
        "type",
        "checkpoint",
        "metadata",
    ),
    "writes": (
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "task_id",
        "task_path",
        "idx",
        "channel",
        "type",
        "value",
    ),
}

_PUT: Final = (
    "INSERT OR REPLACE INTO checkpoints"
    " (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def create_tables(saver: SqliteSaver) -> None:
    """Create the saver's tables, or let it migrate its own, and raise unless they have the columns used here."""
    saver.setup()
    tables = {
        name: {row[1] for row in saver.conn.execute(f"PRAGMA table_info({name})")}
        for (name,) in saver.conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    }
    for table, columns in _COLUMNS.items():
        if tables.get(table) != {*columns}:
            change = (
                f"SqliteSaver's table {table} has the columns {sorted(tables.get(table, ()))}, not {sorted(columns)}"
            )
            raise DependencyChangedError("langgraph-checkpoint-sqlite", change, "checkpoint_sqlite.py")


def put(
    saver: SqliteSaver, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
) -> RunnableConfig:
    """`saver.put`, without the lock and the check of the tables: one thread at a time uses the saver."""
    stored = checkpoint_config(config, checkpoint)
    kind, body = saver.serde.dumps_typed(checkpoint)
    about = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False).encode("utf-8", "ignore")
    row = (*stored["configurable"].values(), config["configurable"].get("checkpoint_id"), kind, body, about)
    with saver.conn:
        saver.conn.execute(_PUT, row)
    return stored


def checkpoint_config(config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    """The place of a checkpoint that is stored with this configuration."""
    place = config["configurable"]
    return {
        "configurable": {
            "thread_id": str(place["thread_id"]),
            "checkpoint_ns": place.get("checkpoint_ns", ""),
            "checkpoint_id": checkpoint["id"],
        }
    }


def idle_threads(saver: SqliteSaver, max_threads: int, oldest_id: str) -> list[str]:
    """Threads whose last checkpoint is older than `oldest_id`, and all but the `max_threads` most recent ones."""
    with saver.cursor(transaction=False) as cursor:
        rows = cursor.execute(
            "SELECT thread_id, max(checkpoint_id) AS last FROM checkpoints GROUP BY thread_id ORDER BY last DESC"
        ).fetchall()
    return [thread_id for place, (thread_id, last) in enumerate(rows) if place >= max_threads or last < oldest_id]


def keep_latest(saver: SqliteSaver, thread_id: str) -> bool:
    """Delete all but the last checkpoint of a thread; false, and nothing deleted, if that waits for an answer."""
    with saver.cursor() as cursor:
        last = _last(cursor, thread_id)
        waiting = cursor.execute(
            "SELECT 1 FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = ?",
            (thread_id, last, INTERRUPT_CHANNEL),
        ).fetchone()
        if waiting:
            return False
        for table in _COLUMNS:
            cursor.execute(
                f"DELETE FROM {table} WHERE thread_id = ? AND (checkpoint_ns != '' OR checkpoint_id < ?)",  # noqa: S608
                (thread_id, last or ""),
            )
    return True


def drop_interrupt(saver: SqliteSaver, thread_id: str) -> None:
    """Delete the pending writes of a thread's last checkpoint, and the checkpoints of nested graphs."""
    with saver.cursor() as cursor:
        cursor.execute(
            "DELETE FROM writes WHERE thread_id = ? AND (checkpoint_ns != '' OR checkpoint_id = ?)",
            (thread_id, _last(cursor, thread_id)),
        )
        cursor.execute("DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns != ''", (thread_id,))


def first_id_since(time_ns: int) -> str:
    """The smallest checkpoint id of that time: ids are UUIDs of version 6, which begin with the time."""
    ticks = time_ns // 100 + 0x01B21DD213814000
    return f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-6{ticks & 0xFFF:03x}"


def _last(cursor: sqlite3.Cursor, thread_id: str) -> str | None:
    found: tuple[str | None] = cursor.execute(
        "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''", (thread_id,)
    ).fetchone()
    return found[0]
