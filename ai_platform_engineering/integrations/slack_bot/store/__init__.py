"""The bot's persistent state: threads, runs and the ids of received events, in memory, in a SQLite file
or in Postgres.

A run's state is stored as opaque JSON; only `thread_view` interprets it.
"""

import asyncio
from collections.abc import Callable

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.integrations.slack_bot.store.file import BotStoreError, check_up_bot_file, store_file
from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.store.sqlite import SqliteBotStore
from ai_platform_engineering.integrations.slack_bot.store.values import (
    BotStore,
    SharedBotStore,
    StoredRun,
    ThreadSession,
)
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.checkup import StoreCheckup

__all__ = [
    "BotStore",
    "BotStoreError",
    "SharedBotStore",
    "StoredRun",
    "ThreadSession",
    "check_up_bot_store",
    "open_store",
]

_NOT_INSTALLED = f"SLACK_SESSIONS=postgres needs psycopg, which is not installed: {install_command('postgres')}."


def open_store(settings: Settings, on_lost: Callable[[BotStoreError], None] = lambda _error: None) -> BotStore:
    """The configured store. Raises `BotStoreError` with the way out.

    A file is locked for this process until it is closed. A `SharedBotStore` is usable after `activate`; `on_lost` is
    called when another bot has become the active one, or may have: this process must do nothing more.
    """
    if settings.slack_sessions == "postgres":
        return _in_postgres(settings, on_lost)
    return MemoryStore() if settings.slack_sessions == "memory" else SqliteBotStore(store_file(settings))


async def check_up_bot_store(settings: Settings) -> StoreCheckup | None:
    """The row of `platform-engineer doctor`; None if no bot has stored anything here."""
    if settings.slack_sessions != "postgres":
        return await check_up_bot_file(settings)
    return await asyncio.to_thread(_check_up_database, settings)


def _check_up_database(settings: Settings) -> StoreCheckup:
    name = "store of the Slack bot"
    try:
        from ai_platform_engineering.integrations.slack_bot.store.postgres import check_up  # noqa: PLC0415

        dsn = settings.slack_sessions_postgres_dsn
        return check_up(name, dsn.get_secret_value() if dsn else "")
    except ModuleNotFoundError:
        return StoreCheckup(name, "postgres", "not usable").failed(_NOT_INSTALLED)
    except BotStoreError as error:
        return StoreCheckup(name, "postgres", "not usable").failed(str(error))


def _in_postgres(settings: Settings, on_lost: Callable[[BotStoreError], None]) -> BotStore:
    try:
        from ai_platform_engineering.integrations.slack_bot.store.postgres import (  # noqa: PLC0415
            BotStoreAddress,
            PostgresBotStore,
        )
    except ModuleNotFoundError:
        raise SettingsError(_NOT_INSTALLED) from None
    dsn = settings.slack_sessions_postgres_dsn
    return PostgresBotStore(BotStoreAddress(dsn.get_secret_value() if dsn else ""), on_lost)
