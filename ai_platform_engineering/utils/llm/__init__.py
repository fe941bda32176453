"""Chat models: `chat_model` gives the one an agent uses, from a provider or offline.

Prompts, graphs and tools live elsewhere; nothing here knows which agents exist.
"""

from ai_platform_engineering.utils.llm.providers import chat_model, is_offline

__all__ = ["chat_model", "is_offline"]
