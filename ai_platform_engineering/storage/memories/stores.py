"""The store of memories that the settings select."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.settings import MEMORY_SERVERS, Settings, SettingsError
from ai_platform_engineering.storage.checkup import IN_MEMORY, StoreCheckup
from ai_platform_engineering.storage.conversation_formats import check_format
from ai_platform_engineering.storage.memories.langgraph_store import FILE_FORMAT, memory_opened, sqlite_opened
from ai_platform_engineering.storage.memories.memories import Memories, MemoryStoreAddress
from ai_platform_engineering.storage.servers.errors import StoreError

_NAME: Final = "store of memories"


def memories_file(settings: Settings) -> Path:
    return settings.data_dir / "memories.db"


def memory_store(settings: Settings) -> MemoryStoreAddress | None:
    """None if memories are off. Raises if a package is missing, an address is wrong, or the file has another format."""
    kind = settings.langgraph_store_type
    variable, url = (settings.memory_address(kind) or ("", "")) if kind in MEMORY_SERVERS else ("", "")
    try:
        match kind:
            case "postgres":
                from ai_platform_engineering.storage.memories.postgres_store import (  # noqa: PLC0415
                    MemoriesAddress,
                    SharedAddress,
                    postgres_opened,
                )

                address = (MemoriesAddress if variable == MemoriesAddress.setting else SharedAddress)(url)
                return MemoryStoreAddress("Postgres", address.place, lambda: postgres_opened(address))
            case "mongodb":
                from ai_platform_engineering.storage.memories.mongodb_store import mongodb_opened  # noqa: PLC0415
                from ai_platform_engineering.storage.servers.mongodb import mongodb_place  # noqa: PLC0415

                place = mongodb_place(url, variable)
                return MemoryStoreAddress("MongoDB", place, lambda: mongodb_opened(url, variable))
            case "redis":
                from ai_platform_engineering.storage.memories.redis_store import redis_opened  # noqa: PLC0415
                from ai_platform_engineering.storage.servers.redis import redis_place  # noqa: PLC0415

                place = redis_place(url, variable)
                return MemoryStoreAddress("Redis", place, lambda: redis_opened(url, variable))
            case "sqlite":
                path = memories_file(settings)
                _check_file(path)
                return MemoryStoreAddress("SQLite", str(path), lambda: sqlite_opened(path))
            case "memory":
                return MemoryStoreAddress("memory", "this process", memory_opened)
            case None:
                return None
    except ModuleNotFoundError:
        raise SettingsError(
            f"LANGGRAPH_STORE_TYPE={kind} needs a package that is not installed: {install_command(str(kind))}."
        ) from None


@asynccontextmanager
async def memories_for(settings: Settings) -> AsyncIterator[Memories | None]:
    """The memories, open inside the `async with` block; None if they are off."""
    address = memory_store(settings)
    if address is None:
        yield None
        return
    async with Memories.opened(address, settings.langgraph_store_ttl_minutes) as memories:
        yield memories


async def check_up_memories(settings: Settings) -> StoreCheckup | None:
    """The row of `platform-engineer doctor`; None if memories are off. Creates no file."""
    kind = settings.langgraph_store_type
    try:
        address = memory_store(settings)
    except SettingsError as error:
        return StoreCheckup(_NAME, str(kind), "not usable").failed(str(error))
    if kind is None or address is None:
        return None
    if kind == "memory":
        return StoreCheckup(_NAME, kind, IN_MEMORY)
    row = StoreCheckup(_NAME, kind, address.place)
    if kind == "sqlite":
        row = await asyncio.to_thread(StoreCheckup.of_file, _NAME, memories_file(settings))
        if not row.exists:
            return row
    try:
        async with address.opened() as store:
            await store.ping()
    except StoreError as error:
        return row.failed(address.problem(error))
    return row.opened()


def _check_file(path: Path) -> None:
    """Raise if the file has another format. One that cannot be read is reported when it is opened."""
    if not path.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            check_format(connection, path, FILE_FORMAT)
    except sqlite3.Error:
        return
