"""The bot's persistent state: threads, runs and the ids of received events, in memory, in a SQLite file
or in Postgres.

A run's state is stored as opaque JSON; only `thread_view` interprets it.
"""

from collections.abc import Callable

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.integrations.slack_bot.store.file import BotStoreError, store_file
from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.store.sqlite import SqliteBotStore
from ai_platform_engineering.integrations.slack_bot.store.values import (
    BotStore,
    SharedBotStore,
    StoredRun,
    ThreadSession,
)
from ai_platform_engineering.settings import Settings, SettingsError

__all__ = ["BotStore", "BotStoreError", "SharedBotStore", "StoredRun", "ThreadSession", "open_store"]


def open_store(settings: Settings, on_lost: Callable[[BotStoreError], None] = lambda _error: None) -> BotStore:
    """The configured store. Raises `BotStoreError` with the way out.

    A file is locked for this process until it is closed. A `SharedBotStore` is usable after `activate`; `on_lost` is
    called when another bot has become the active one, or may have: this process must do nothing more.
    """
    if settings.slack_sessions == "postgres" and settings.slack_sessions_postgres_dsn is not None:
        try:
            from ai_platform_engineering.integrations.slack_bot.store.postgres import (  # noqa: PLC0415
                BotStoreAddress,
                PostgresBotStore,
            )
        except ModuleNotFoundError:
            raise SettingsError(
                f"SLACK_SESSIONS=postgres needs psycopg, which is not installed: {install_command('postgres')}."
            ) from None
        address = BotStoreAddress(settings.slack_sessions_postgres_dsn.get_secret_value())
        return PostgresBotStore(address, on_lost)
    return MemoryStore() if settings.slack_sessions == "memory" else SqliteBotStore(store_file(settings))
