"""A checkpointer that stores conversations in Redis.

LangGraph's saver stores values as JSON, which loses types (a `datetime` comes back as text) and creates objects from
any dictionary that looks like a serialized one, also in a tool's result. So values are encoded here, with the
serializer that the other stores use.
"""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.redis.aio import AsyncRedisSaver
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError
from redisvl.exceptions import RedisVLError

from ai_platform_engineering.compat import checkpoint_redis
from ai_platform_engineering.compat.checkpoint_serializer import CheckpointSerializer
from ai_platform_engineering.settings import ADDRESS_VARIABLES
from ai_platform_engineering.storage.checkpoints.server_saver import ServerSaver
from ai_platform_engineering.storage.servers.errors import StoreError
from ai_platform_engineering.storage.servers.redis import REDIS_ERRORS, redis_client, redis_error

# They log errors that they also raise, and every connection.
logging.getLogger("redisvl").setLevel(logging.CRITICAL)
logging.getLogger("langgraph.checkpoint.redis").setLevel(logging.WARNING)

_SETTING: Final = ADDRESS_VARIABLES["redis"]
_PACKED: Final = "platform_engineer_type"
_SETUP_LOCK: Final = "platform-engineer:conversations:setup"
_SETUP_SECONDS: Final = 30.0


class RedisSaver(ServerSaver):
    _errors: ClassVar = (*REDIS_ERRORS, RedisVLError)

    def __init__(self, saver: AsyncRedisSaver, client: Redis) -> None:
        super().__init__(CheckpointSerializer())
        self._redis = saver
        self._client = client

    @classmethod
    @asynccontextmanager
    async def opened(cls, url: str, ttl_minutes: float) -> AsyncIterator[RedisSaver]:
        client = redis_client(url)
        ttl = {"default_ttl": ttl_minutes, "refresh_on_read": False} if ttl_minutes else None
        saver = AsyncRedisSaver(redis_client=client, ttl=ttl)
        try:
            try:
                # Two processes that create the same index at once fail.
                async with client.lock(_SETUP_LOCK, timeout=_SETUP_SECONDS, blocking_timeout=_SETUP_SECONDS):
                    await saver.setup()
                checkpoint_redis.check_keys(saver)
            except cls._errors as error:
                raise _store_error(error) from None
            opened = cls(saver, client)
            try:
                yield opened
            finally:
                await opened.end_attempts()
        finally:
            await client.aclose()

    async def ping(self) -> None:
        await self._run(self._client.ping)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await super().aget_tuple(config)
        return None if found is None else self._unpacked(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name in the base class
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in super().alist(config, filter=filter, before=before, limit=limit):
            yield self._unpacked(found)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        packed = checkpoint.copy()
        packed["channel_values"] = {name: self._pack(value) for name, value in checkpoint["channel_values"].items()}
        return await super().aput(config, packed, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        packed = [(channel, self._pack(value)) for channel, value in writes]
        await super().aput_writes(config, packed, task_id, task_path)

    async def keep_latest(self, thread_id: str) -> bool:
        return await self._run(lambda: checkpoint_redis.keep_latest(self._redis, self._client, thread_id))

    async def _drop_interrupt(self, thread_id: str) -> None:
        await self._run(lambda: checkpoint_redis.drop_interrupt(self._redis, self._client, thread_id))

    def _pack(self, value: Any) -> Any:
        if value is None or isinstance(value, str | bool | int):
            return value
        kind, data = self.serde.dumps_typed(value)
        return {_PACKED: kind, "data": b64encode(data).decode()}

    def _unpack(self, value: Any) -> Any:
        match value:
            case {"platform_engineer_type": str(kind), "data": str(data)}:
                return self.serde.loads_typed((kind, b64decode(data)))
            case _:
                return value

    def _unpacked(self, found: CheckpointTuple) -> CheckpointTuple:
        checkpoint = found.checkpoint.copy()
        values = checkpoint["channel_values"]
        checkpoint["channel_values"] = {name: self._unpack(value) for name, value in values.items()}
        writes = [(task_id, channel, self._unpack(value)) for task_id, channel, value in found.pending_writes or ()]
        return found._replace(checkpoint=checkpoint, pending_writes=writes)

    def _saver(self, thread_id: str) -> BaseCheckpointSaver[Any]:
        saver: BaseCheckpointSaver[Any] = self._redis
        return saver

    def _store_error(self, error: Exception) -> StoreError:
        return _store_error(error)


def _store_error(error: Exception) -> StoreError:
    cause: BaseException = error
    # RedisVL wraps the errors of the client.
    while isinstance(cause, RedisVLError) and isinstance(cause.__cause__, RedisError | RedisVLError | OSError):
        cause = cause.__cause__
    if isinstance(cause, ResponseError) and "unknown command" in str(cause).lower():
        way_out = "Use Redis 8 or Redis Stack, or another LANGGRAPH_CHECKPOINT_TYPE."
        return StoreError("it has no JSON and Search modules", way_out)
    return redis_error(cause, _SETTING)
