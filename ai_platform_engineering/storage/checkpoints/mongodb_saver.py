"""A checkpointer that stores conversations in MongoDB.

LangGraph's saver is synchronous: its asynchronous methods run in threads, as those here do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.mongodb import MongoDBSaver
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, ServerSelectionTimeoutError

from ai_platform_engineering.compat import checkpoint_mongodb
from ai_platform_engineering.settings import ADDRESS_VARIABLES
from ai_platform_engineering.storage.checkpoints.server_saver import ServerSaver
from ai_platform_engineering.storage.servers.errors import StoreError
from ai_platform_engineering.storage.servers.mongodb import DATABASE, MONGODB_ERRORS, mongodb_client, mongodb_error

_SETTING: Final = ADDRESS_VARIABLES["mongodb"]


class MongoSaver(ServerSaver):
    _errors: ClassVar = MONGODB_ERRORS

    def __init__(self, saver: MongoDBSaver) -> None:
        super().__init__()
        self._mongodb = saver

    @classmethod
    @asynccontextmanager
    async def opened(cls, uri: str, ttl_minutes: float) -> AsyncIterator[MongoSaver]:
        client = mongodb_client(uri)
        try:
            try:
                saver = cls(await asyncio.to_thread(_prepared, client, ttl_minutes))
            except cls._errors as error:
                raise mongodb_error(error, _SETTING) from None
            yield saver
        finally:
            await asyncio.to_thread(client.close)

    async def ping(self) -> None:
        await self._in_thread(self._mongodb.client.admin.command, "ping")

    async def keep_latest(self, thread_id: str) -> bool:
        kept: bool = await self._in_thread(checkpoint_mongodb.keep_latest, self._mongodb, thread_id)
        return kept

    async def _drop_interrupt(self, thread_id: str) -> None:
        await self._in_thread(checkpoint_mongodb.drop_interrupt, self._mongodb, thread_id)

    async def _in_thread(self, work: Any, *arguments: Any) -> Any:
        return await self._run(lambda: asyncio.to_thread(work, *arguments))

    async def _reconnected(self, error: Exception) -> bool:
        return isinstance(error, AutoReconnect) and not isinstance(error, ServerSelectionTimeoutError)

    def _saver(self, thread_id: str) -> BaseCheckpointSaver[Any]:
        saver: BaseCheckpointSaver[Any] = self._mongodb
        return saver

    def _store_error(self, error: Exception) -> StoreError:
        return mongodb_error(error, _SETTING)


def _prepared(client: MongoClient[dict[str, Any]], ttl_minutes: float) -> MongoDBSaver:
    """The saver, which creates its indexes. Several processes may create the same index at once."""
    database = client.get_default_database(DATABASE)
    ttl = max(1, round(ttl_minutes * 60)) if ttl_minutes else None
    checkpoint_mongodb.set_ttl(database, ttl)
    saver = MongoDBSaver(client, db_name=database.name, ttl=ttl)
    checkpoint_mongodb.check_documents(saver)
    return saver
