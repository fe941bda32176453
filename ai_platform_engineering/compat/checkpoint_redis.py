"""LangGraph's `AsyncRedisSaver`: its documents, found with its search indexes and deleted by key.

The keys are not documented. The saver's `aprune` keeps a checkpoint of every nested graph, and deletes the earlier
checkpoints of a conversation while a form is open. The indexes compare names without case, so documents of other
threads are sorted out here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from langgraph.checkpoint.redis.aio import AsyncRedisSaver
from redis.asyncio import Redis
from redisvl.query import FilterQuery
from redisvl.query.filter import Tag

from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL, DependencyChangedError

_ROOT: Final = "__empty__"
_MAX_DOCUMENTS: Final = 10_000
_INDEXED: Final = ("thread_id", "checkpoint_ns", "checkpoint_id")


class _Document(NamedTuple):
    key: str
    namespace: str
    checkpoint_id: str
    channel: str


def check_keys(saver: AsyncRedisSaver) -> None:
    """Raise unless the saver's indexes have the fields, and its keys the names, that are used here."""
    try:
        fields = {*saver.checkpoints_index.schema.field_names} & {*saver.checkpoint_writes_index.schema.field_names}
        is_known = (
            fields >= {*_INDEXED}
            and "channel" in saver.checkpoint_writes_index.schema.field_names
            and saver._make_redis_checkpoint_key("t", "", "c").split(":")[-3:] == ["t", _ROOT, "c"]
            and _latest_key(saver, "t", _ROOT).endswith(f"t:{_ROOT}")
            and _registry_key(saver, "t", _ROOT, "c").endswith(f"t:{_ROOT}:c")
        )
    except (AttributeError, TypeError):
        is_known = False
    if not is_known:
        change = "AsyncRedisSaver has other indexes or keys"
        raise DependencyChangedError("langgraph-checkpoint-redis", change, "checkpoint_redis.py")


async def keep_latest(saver: AsyncRedisSaver, client: Redis, thread_id: str) -> bool:
    """Delete all but the last checkpoint of a thread; false, and nothing deleted, if that waits for an answer."""
    checkpoints, writes = await _documents(saver, thread_id)
    last = _last(checkpoints)
    if any(_is_root(write) and write.checkpoint_id == last and write.channel == INTERRUPT_CHANNEL for write in writes):
        return False
    await _delete(
        saver,
        client,
        thread_id,
        [found for found in checkpoints if not _is_root(found) or found.checkpoint_id < last],
        [found for found in writes if not _is_root(found) or found.checkpoint_id < last],
    )
    return True


async def drop_interrupt(saver: AsyncRedisSaver, client: Redis, thread_id: str) -> None:
    """Delete the pending writes of a thread's last checkpoint, and the checkpoints of nested graphs."""
    checkpoints, writes = await _documents(saver, thread_id)
    last = _last(checkpoints)
    await _delete(
        saver,
        client,
        thread_id,
        [found for found in checkpoints if not _is_root(found)],
        [found for found in writes if not _is_root(found) or found.checkpoint_id == last],
    )


async def _documents(saver: AsyncRedisSaver, thread_id: str) -> tuple[list[_Document], list[_Document]]:
    """The checkpoints of a thread, and its pending writes."""
    return (
        await _found(saver.checkpoints_index, thread_id, _INDEXED),
        await _found(saver.checkpoint_writes_index, thread_id, (*_INDEXED, "channel")),
    )


async def _found(index: Any, thread_id: str, fields: tuple[str, ...]) -> list[_Document]:
    query = FilterQuery(
        filter_expression=Tag("thread_id") == thread_id, return_fields=[*fields], num_results=_MAX_DOCUMENTS
    )
    return [
        _Document(found.id, found.checkpoint_ns, found.checkpoint_id, getattr(found, "channel", ""))
        for found in (await index.search(query)).docs
        if found.thread_id == thread_id
    ]


async def _delete(
    saver: AsyncRedisSaver, client: Redis, thread_id: str, checkpoints: list[_Document], writes: list[_Document]
) -> None:
    keys = {found.key for found in (*checkpoints, *writes)}
    keys |= {_registry_key(saver, thread_id, found.namespace, found.checkpoint_id) for found in (*checkpoints, *writes)}
    keys |= {_latest_key(saver, thread_id, found.namespace) for found in checkpoints if not _is_root(found)}
    # One command per key: in a cluster they may be on several servers.
    for key in keys:
        await client.delete(key)


def _is_root(found: _Document) -> bool:
    return found.namespace == _ROOT


def _last(checkpoints: list[_Document]) -> str:
    return max((found.checkpoint_id for found in checkpoints if _is_root(found)), default="")


def _latest_key(saver: AsyncRedisSaver, thread_id: str, namespace: str) -> str:
    """The key of the pointer to the last checkpoint of a namespace."""
    return str(saver._make_redis_checkpoint_latest_key(thread_id, "" if namespace == _ROOT else namespace))


def _registry_key(saver: AsyncRedisSaver, thread_id: str, namespace: str, checkpoint_id: str) -> str:
    """The key of the set with the keys of a checkpoint's pending writes."""
    registry: Any = saver._key_registry
    return str(registry.make_write_keys_zset_key(thread_id, namespace, checkpoint_id))
