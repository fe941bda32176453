"""Chat models: `chat_model` gives the one an agent uses, from a provider or offline.

Prompts, graphs and tools live elsewhere; nothing here knows which agents exist.
"""

from ai_platform_engineering.llm.providers import chat_model, is_offline, is_offline_model

__all__ = ["chat_model", "is_offline", "is_offline_model"]
