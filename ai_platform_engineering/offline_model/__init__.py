"""The offline model: a deterministic chat model that plans, delegates, calls tools and answers by matching words.

It serves first runs, demos, tests and load tests, and knows no product by name. `model` is the LangChain model,
`decision` makes one reply, `supervisor` and `agent` are the two roles; the packages are in the order of a reply:
`messages`, `english`, `planning`, `tool_calls`, `knowledge`, `skills`, `workflows`, `results`, `answers`.
"""

from ai_platform_engineering.offline_model.model import OfflineChatModel

__all__ = ["OfflineChatModel"]
