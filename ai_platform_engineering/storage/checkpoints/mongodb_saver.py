"""A checkpointer that stores conversations in MongoDB.

LangGraph's saver is synchronous: its asynchronous methods run in threads, as those here do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from bson.errors import BSONError
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.mongodb import MongoDBSaver
from pymongo import MongoClient
from pymongo.errors import (
    AutoReconnect,
    ConfigurationError,
    ConnectionFailure,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.uri_parser import parse_uri

from ai_platform_engineering.compat import checkpoint_mongodb
from ai_platform_engineering.settings import ADDRESS_VARIABLES, SettingsError
from ai_platform_engineering.storage.checkpoints.server_saver import ServerSaver, StoreError

_DATABASE: Final = "checkpointing_db"
_OPTIONS: Final[dict[str, Any]] = {
    "appname": "platform-engineer",
    "serverSelectionTimeoutMS": 3_000,
    "connectTimeoutMS": 3_000,
    "timeoutMS": 10_000,
    "tz_aware": True,
}
_AUTHENTICATION_FAILED: Final = 18
_UNAUTHORIZED: Final = 13
_SETTING: Final = ADDRESS_VARIABLES["mongodb"]


class MongoSaver(ServerSaver):
    # A conversation that is too large for a document raises an error of BSON.
    _errors: ClassVar = (PyMongoError, BSONError, OSError)

    def __init__(self, saver: MongoDBSaver) -> None:
        super().__init__()
        self._mongodb = saver

    @classmethod
    @asynccontextmanager
    async def opened(cls, uri: str, ttl_minutes: float) -> AsyncIterator[MongoSaver]:
        client: MongoClient[dict[str, Any]] = MongoClient(uri, connect=False, **_OPTIONS)
        try:
            try:
                saver = cls(await asyncio.to_thread(_prepared, client, ttl_minutes))
            except cls._errors as error:
                raise _store_error(error) from None
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
        return _store_error(error)


def mongodb_place(uri: str) -> str:
    """Hosts and database of the address, without credentials. Raises if the address cannot be parsed."""
    try:
        # Parsing a mongodb+srv address looks up names, which the client does when it connects.
        parsed = parse_uri(uri.replace("mongodb+srv://", "mongodb://", 1), validate=False, warn=False)
    except (InvalidURI, ConfigurationError, ValueError):
        raise SettingsError(
            f"{_SETTING} is not the address of a MongoDB server: it has to look like "
            "mongodb://user:password@host:27017/database, with characters such as @ / : in the password "
            "percent-encoded."
        ) from None
    hosts = ",".join(host if port is None else f"{host}:{port}" for host, port in parsed["nodelist"])
    return f"{hosts}/{parsed['database'] or _DATABASE}"


def _prepared(client: MongoClient[dict[str, Any]], ttl_minutes: float) -> MongoDBSaver:
    """The saver, which creates its indexes. Several processes may create the same index at once."""
    database = client.get_default_database(_DATABASE)
    ttl = max(1, round(ttl_minutes * 60)) if ttl_minutes else None
    checkpoint_mongodb.set_ttl(database, ttl)
    saver = MongoDBSaver(client, db_name=database.name, ttl=ttl)
    checkpoint_mongodb.check_documents(saver)
    return saver


def _store_error(error: Exception) -> StoreError:
    check = f"Check that the server is running, and the host, user and password in {_SETTING}."
    match error:
        case OperationFailure(code=code) if code == _AUTHENTICATION_FAILED:
            reason, way_out = "it refused the user or the password", check
        case OperationFailure(code=code) if code == _UNAUTHORIZED:
            reason, way_out = "the user lacks a permission", f"Grant it, or name another user in {_SETTING}."
        case OperationFailure(details={"errmsg": str(message)}):
            reason, way_out = message, ""
        case ServerSelectionTimeoutError():
            reason, way_out = "no server that accepts writes could be reached", check
        case ConnectionFailure():
            reason, way_out = "the connection failed", check
        case BSONError():
            reason, way_out = str(error), ""
        case _:
            reason, way_out = type(error).__name__, ""
    return StoreError(reason, way_out)
