"""Memories in Redis, in one hash per owner.

LangGraph's `AsyncRedisStore` is not used: with the installed RedisVL it cannot be created, and it needs the Search
module, which these few operations do not.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

from redis.asyncio import Redis

from ai_platform_engineering.storage.memories.memory import Memory
from ai_platform_engineering.storage.servers.redis import REDIS_ERRORS, redis_client, redis_error

T = TypeVar("T")

_PREFIX: Final = "platform-engineer:memories:"


class RedisStore:
    """`setting` is the variable with the address."""

    def __init__(self, client: Redis, setting: str) -> None:
        self._client = client
        self._setting = setting

    async def ping(self) -> None:
        await self._run(self._client.ping)

    async def read(self, owner: str) -> Sequence[Memory]:
        return _memories(await self._run(lambda: self._client.hgetall(_PREFIX + owner)))

    async def put(self, owner: str, memory: Memory) -> None:
        value = json.dumps(memory.value(), ensure_ascii=False)
        await self._run(lambda: self._client.hset(_PREFIX + owner, memory.id, value))

    async def delete(self, owner: str, ids: Collection[str]) -> None:
        if ids:
            await self._run(lambda: self._client.hdel(_PREFIX + owner, *ids))

    async def delete_older(self, created_before: datetime) -> None:
        await self._run(lambda: self._delete_older(created_before))

    async def _delete_older(self, created_before: datetime) -> None:
        async for key in self._client.scan_iter(match=f"{_PREFIX}*", count=1_000):
            stored = _memories(await self._client.hgetall(key))
            if older := [memory.id for memory in stored if memory.created < created_before]:
                await self._client.hdel(key, *older)

    async def _run(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            return await operation()
        except REDIS_ERRORS as error:
            raise redis_error(error, self._setting) from None


@asynccontextmanager
async def redis_opened(url: str, setting: str) -> AsyncIterator[RedisStore]:
    client = redis_client(url)
    store = RedisStore(client, setting)
    try:
        await store.ping()
        yield store
    finally:
        await client.aclose()


def _memories(stored: Mapping[Any, Any]) -> list[Memory]:
    read = (Memory.read(memory_id.decode(), json.loads(value)) for memory_id, value in stored.items())
    return [*filter(None, read)]
