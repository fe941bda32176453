"""The stores of conversations: the supervisor's, which the settings select, and that of an agent's server."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.installation import install_command
from ai_platform_engineering.settings import ADDRESS_VARIABLES, Settings, SettingsError
from ai_platform_engineering.storage.checkpoints.conversation_store import STORE_ERRORS, StoreAddress
from ai_platform_engineering.storage.checkpoints.fallback_saver import FallbackSaver
from ai_platform_engineering.storage.checkpoints.file_saver import FileSaver
from ai_platform_engineering.storage.checkup import IN_MEMORY, StoreCheckup
from ai_platform_engineering.storage.conversation_formats import CONVERSATIONS, check_format
from ai_platform_engineering.storage.data_files import (
    ConversationsFileError,
    conversations_file,
    keeps_conversations,
)
from ai_platform_engineering.storage.event_log.log_database import log_address


@dataclass(frozen=True, slots=True)
class ConversationsCheckup:
    """The check of the store for `platform-engineer doctor`. `where` has no credentials.

    `reachable` is None if there is nothing to reach: in memory, or before the file is created.
    """

    kind: str
    where: str
    reachable: bool | None = None
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}, {self.where}"

    def row(self) -> StoreCheckup:
        name = "store of conversations"
        facts = StoreCheckup.of_file(name, Path(self.where)).facts if self.kind == "sqlite" else {}
        return StoreCheckup(name, self.kind, self.where, self.reachable, facts, self.problem)


def store_address(settings: Settings) -> StoreAddress | None:
    """None for conversations in memory. Raises if a package is missing or the address cannot be parsed."""
    kind = settings.checkpoint_type
    url = settings.checkpoint_address(kind) or "" if kind in {"postgres", "mongodb", "redis"} else ""
    ttl = settings.langgraph_checkpoint_ttl_minutes
    try:
        match kind:
            case "postgres":
                from ai_platform_engineering.storage.checkpoints.postgres_saver import (  # noqa: PLC0415
                    ConversationsAddress,
                    PostgresSaver,
                )

                address = ConversationsAddress(url)
                # The claims of runs are in the event log. In the same database, one transaction checks and writes.
                together = settings.event_log == "postgres" and log_address(settings).place == address.place
                return StoreAddress(
                    "postgres",
                    "Postgres",
                    address.place,
                    lambda: PostgresSaver.opened(address, with_event_log=together),
                    checks_claims=together,
                )
            case "mongodb":
                from ai_platform_engineering.storage.checkpoints.mongodb_saver import MongoSaver  # noqa: PLC0415
                from ai_platform_engineering.storage.servers.mongodb import mongodb_place  # noqa: PLC0415

                place = mongodb_place(url, ADDRESS_VARIABLES[kind])
                return StoreAddress("mongodb", "MongoDB", place, lambda: MongoSaver.opened(url, ttl))
            case "redis":
                from ai_platform_engineering.storage.checkpoints.redis_saver import RedisSaver  # noqa: PLC0415
                from ai_platform_engineering.storage.servers.redis import redis_place  # noqa: PLC0415

                place = redis_place(url, ADDRESS_VARIABLES[kind])
                return StoreAddress("redis", "Redis", place, lambda: RedisSaver.opened(url, ttl))
            case "sqlite":
                return _file_address(settings)
            case _:
                return None
    except ModuleNotFoundError:
        package = f"langgraph-checkpoint-{kind}"
        raise SettingsError(
            f"LANGGRAPH_CHECKPOINT_TYPE={kind} needs {package}, which is not installed: {install_command(kind)}."
        ) from None


def agent_store_address(settings: Settings, agent: str) -> StoreAddress | None:
    """None for conversations in memory."""
    if not keeps_conversations(settings, agent):
        return None
    return _file_address(settings, agent)


def _file_address(settings: Settings, agent: str = SUPERVISOR) -> StoreAddress:
    path = conversations_file(settings, agent)
    return StoreAddress("sqlite", "SQLite", str(path), lambda: FileSaver.opened(settings, agent))


def check_store(settings: Settings) -> None:
    """Raise before the start what would stop it later: a wrong address or, with `REQUIRE_PERSISTENCE`, a server that
    cannot be used."""
    address = store_address(settings)
    if address is not None and settings.require_persistence:

        async def probe() -> None:
            async with FallbackSaver.opened(address, 1, required=True):
                pass

        asyncio.run(probe())


async def check_up_conversations(settings: Settings) -> ConversationsCheckup:
    kind = settings.checkpoint_type
    try:
        address = store_address(settings)
    except SettingsError as error:
        return ConversationsCheckup(kind, "not usable", False, str(error))
    if address is None:
        return ConversationsCheckup(kind, IN_MEMORY)
    try:
        if kind == "sqlite":
            return ConversationsCheckup(kind, address.place, _file_exists(settings))
        async with address.opened() as store:
            await store.ping()
    except STORE_ERRORS as error:
        return ConversationsCheckup(kind, address.place, False, address.problem(error))
    except SettingsError as error:
        return ConversationsCheckup(kind, address.place, False, str(error))
    return ConversationsCheckup(kind, address.place, True)


def _file_exists(settings: Settings) -> bool | None:
    """None before the first start. Raises if the file cannot be read."""
    path = conversations_file(settings)
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            check_format(connection, path, CONVERSATIONS)
    except sqlite3.Error as error:
        raise ConversationsFileError(path, error) from error
    return True
