"""The offline model: a deterministic chat model that plans, delegates, calls tools and answers by matching words.

Product code for first runs, demos, tests and load tests; it knows no product by name. Real providers live one level up.
"""

from ai_platform_engineering.offline_model.model import OfflineChatModel

__all__ = ["OfflineChatModel"]
