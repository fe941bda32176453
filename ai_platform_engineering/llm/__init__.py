"""Chat models: `chat_model` returns the model of an agent, from a provider or offline.

Prompts, graphs and tools live in other packages. This package does not know which agents exist.
"""

from ai_platform_engineering.llm.providers import chat_model, is_offline, is_offline_model, reads_plain_results

__all__ = ["chat_model", "is_offline", "is_offline_model", "reads_plain_results"]
