"""What the bot keeps: threads, runs and the events that it has heard, in memory or in a file of its own.

What a run's state means is the reducer's business; here it is a text.
"""

from ai_platform_engineering.integrations.slack_bot.store.file import StoreError
from ai_platform_engineering.integrations.slack_bot.store.opening import open_store
from ai_platform_engineering.integrations.slack_bot.store.values import BotStore, KeptRun, Session

__all__ = ["BotStore", "KeptRun", "Session", "StoreError", "open_store"]
