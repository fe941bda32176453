"""The bot's persistent state: threads, runs and the ids of received events, in memory or in a SQLite file.

A run's state is stored as opaque JSON; only `thread_view` interprets it.
"""

from ai_platform_engineering.integrations.slack_bot.store.file import BotStoreError, store_file
from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.store.sqlite import SqliteBotStore
from ai_platform_engineering.integrations.slack_bot.store.values import BotStore, StoredRun, ThreadSession
from ai_platform_engineering.settings import Settings

__all__ = ["BotStore", "BotStoreError", "StoredRun", "ThreadSession", "open_store"]


def open_store(settings: Settings) -> BotStore:
    """The configured store, locked for this process until it is closed. Raises `BotStoreError` with the way out."""
    return MemoryStore() if settings.slack_sessions == "memory" else SqliteBotStore(store_file(settings))
