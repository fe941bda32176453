"""LangGraph's `MongoDBSaver`: its documents and indexes.

The documents are not documented, and the saver has no `prune`. With a TTL index of another duration than the given one,
the saver's constructor fails.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.mongodb import MongoDBSaver
from pymongo.database import Database

from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL, DependencyChangedError

_COLLECTIONS: Final = ("checkpoints", "checkpoint_writes")
_TTL_FIELD: Final = "created_at"


def set_ttl(database: Database[dict[str, Any]], seconds: int | None) -> None:
    """Give existing TTL indexes this duration, or delete them. The saver creates those that do not exist."""
    for name in {*_COLLECTIONS} & {*database.list_collection_names()}:
        for index in database[name].list_indexes():
            if [*index["key"]] == [_TTL_FIELD] and index.get("expireAfterSeconds") != seconds:
                if seconds is None:
                    database[name].drop_index(index["name"])
                else:
                    change = {"name": index["name"], "expireAfterSeconds": seconds}
                    database.command("collMod", name, index=change)


def check_documents(saver: MongoDBSaver) -> None:
    """Raise unless a stored checkpoint and its writes are documents with the fields used here."""
    thread_id = f"platform-engineer-check-{uuid4()}"
    place = {"thread_id": thread_id, "checkpoint_ns": ""}
    checkpoint = empty_checkpoint()
    try:
        stored = saver.put({"configurable": place}, checkpoint, {}, {})
        saver.put_writes(stored, [(INTERRUPT_CHANNEL, 1)], "task")
        document = place | {"checkpoint_id": checkpoint["id"]}
        is_known = (
            saver.checkpoint_collection.count_documents(document) == 1
            and saver.writes_collection.count_documents(document | {"channel": INTERRUPT_CHANNEL}) == 1
        )
    finally:
        saver.delete_thread(thread_id)
    if not is_known:
        change = "MongoDBSaver stores documents with other fields than thread_id, checkpoint_ns, checkpoint_id, channel"
        raise DependencyChangedError("langgraph-checkpoint-mongodb", change, "checkpoint_mongodb.py")


def keep_latest(saver: MongoDBSaver, thread_id: str) -> bool:
    """Delete all but the last checkpoint of a thread; false, and nothing deleted, if that waits for an answer."""
    last = _last(saver, thread_id)
    if last is None:
        return True
    of_last = {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": last}
    if saver.writes_collection.find_one(of_last | {"channel": INTERRUPT_CHANNEL}, {"_id": 1}):
        return False
    old = {"thread_id": thread_id, "$or": [{"checkpoint_ns": {"$ne": ""}}, {"checkpoint_id": {"$lt": last}}]}
    saver.checkpoint_collection.delete_many(old)
    saver.writes_collection.delete_many(old)
    return True


def drop_interrupt(saver: MongoDBSaver, thread_id: str) -> None:
    """Delete the pending writes of a thread's last checkpoint, and the checkpoints of nested graphs."""
    nested: dict[str, Any] = {"checkpoint_ns": {"$ne": ""}}
    saver.writes_collection.delete_many(
        {"thread_id": thread_id, "$or": [nested, {"checkpoint_id": _last(saver, thread_id)}]}
    )
    saver.checkpoint_collection.delete_many({"thread_id": thread_id} | nested)


def _last(saver: MongoDBSaver, thread_id: str) -> str | None:
    found = saver.checkpoint_collection.find_one(
        {"thread_id": thread_id, "checkpoint_ns": ""}, {"checkpoint_id": 1}, sort=[("checkpoint_id", -1)]
    )
    return None if found is None else str(found["checkpoint_id"])
