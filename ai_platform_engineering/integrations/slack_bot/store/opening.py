"""Which store the settings ask for."""

from __future__ import annotations

from pathlib import Path

from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.store.sqlite import SqliteStore
from ai_platform_engineering.integrations.slack_bot.store.values import BotStore
from ai_platform_engineering.settings import Settings


def store_file(settings: Settings) -> Path:
    return settings.data_dir / "slack.sqlite"


def open_store(settings: Settings) -> BotStore:
    """The store, which is this process's alone until it is closed; raises `StoreError` with the way out."""
    return MemoryStore() if settings.slack_sessions == "memory" else SqliteStore(store_file(settings))
