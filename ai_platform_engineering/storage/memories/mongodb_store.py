"""Memories in MongoDB, in a collection of their own.

LangGraph's `MongoDBStore` is not used: its search reads the whole collection, once per turn of the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

from pymongo import MongoClient
from pymongo.collection import Collection as MongoCollection

from ai_platform_engineering.storage.memories.memory import Memory, to_ms
from ai_platform_engineering.storage.servers.mongodb import DATABASE, MONGODB_ERRORS, mongodb_client, mongodb_error

T = TypeVar("T")

_COLLECTION: Final = "memories"
_PAGE: Final = 1_000


class MongoStore:
    """The driver blocks, so its calls run in threads. `setting` is the variable with the address."""

    def __init__(self, collection: MongoCollection[dict[str, Any]], setting: str) -> None:
        self._collection = collection
        self._setting = setting

    async def ping(self) -> None:
        await self._in_thread(lambda: self._collection.database.command("ping"))

    async def read(self, owner: str) -> Sequence[Memory]:
        rows = await self._in_thread(lambda: [*self._collection.find({"_id.owner": owner}).limit(_PAGE)])
        return [*filter(None, (Memory.read(row["_id"]["memory"], row) for row in rows))]

    async def put(self, owner: str, memory: Memory) -> None:
        key, change = {"_id": _id(owner, memory.id)}, {"$set": memory.value()}
        await self._in_thread(lambda: self._collection.update_one(key, change, upsert=True))

    async def delete(self, owner: str, ids: Collection[str]) -> None:
        keys = [_id(owner, memory_id) for memory_id in ids]
        await self._in_thread(lambda: self._collection.delete_many({"_id": {"$in": keys}}))

    async def delete_older(self, created_before: datetime) -> None:
        older = {"created": {"$lt": to_ms(created_before)}}
        await self._in_thread(lambda: self._collection.delete_many(older))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except MONGODB_ERRORS as error:
            raise mongodb_error(error, self._setting) from None


@asynccontextmanager
async def mongodb_opened(uri: str, setting: str) -> AsyncIterator[MongoStore]:
    client = mongodb_client(uri)
    try:
        try:
            collection = await asyncio.to_thread(_prepared, client)
        except MONGODB_ERRORS as error:
            raise mongodb_error(error, setting) from None
        yield MongoStore(collection, setting)
    finally:
        await asyncio.to_thread(client.close)


def _prepared(client: MongoClient[dict[str, Any]]) -> MongoCollection[dict[str, Any]]:
    """Several processes may create the same index at once."""
    collection = client.get_default_database(DATABASE)[_COLLECTION]
    collection.create_index("_id.owner")
    collection.create_index("created")
    return collection


def _id(owner: str, memory_id: str) -> dict[str, str]:
    return {"owner": owner, "memory": memory_id}
