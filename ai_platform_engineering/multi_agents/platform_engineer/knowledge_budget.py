"""Ends a question whose budget of knowledge base calls is used up.

A model that keeps calling the tools gets one turn without tools. If it still writes nothing, the answer is a list of
the passages found, with their sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import BaseMessage
from langgraph.config import get_stream_writer

from ai_platform_engineering.graphs.last_turn import answer_only, without_tools
from ai_platform_engineering.multi_agents.platform_engineer.found_passages import found_text
from ai_platform_engineering.multi_agents.platform_engineer.rag_tools import turns_of_question
from ai_platform_engineering.runs.translation import LimitReached

KNOWLEDGE_CALLS: Final = "knowledge_calls"

# The first refusal tells the model to write; a model that calls again ignores it.
_MAX_WASTED_TURNS: Final = 2

_INSTRUCTION = (
    "You have used all the searches and documents you may have for this question. Do not call any tool. Write the "
    "answer now from what you have found above, with its sources, and say plainly what you did not find."
)


class KnowledgeBudget(AgentMiddleware[Any, Any, Any]):
    """`max_calls` is the budget per question of each tool that has one."""

    def __init__(self, max_calls: Mapping[str, int]) -> None:
        super().__init__()
        self._max_calls = max_calls

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        if wasted_turns(request.messages, self._max_calls) < _MAX_WASTED_TURNS:
            return await handler(request)
        get_stream_writer()(LimitReached(KNOWLEDGE_CALLS))
        last = without_tools(request, _INSTRUCTION)
        return answer_only(await handler(last), lambda: found_text(request.messages))


def wasted_turns(messages: Sequence[BaseMessage], max_calls: Mapping[str, int]) -> int:
    """The number of turns since the last user message in which every call exceeded its budget."""
    calls: Counter[str] = Counter()
    wasted = 0
    for turn in turns_of_question(messages):
        names = [call["name"] for call in turn.tool_calls]
        rejected = 0
        for name in names:
            calls[name] += 1
            rejected += name in max_calls and calls[name] > max_calls[name]
        wasted += bool(names) and rejected == len(names)
    return wasted
