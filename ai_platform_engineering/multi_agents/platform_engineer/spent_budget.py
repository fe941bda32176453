"""Ends a question whose knowledge-base calls are used up.

A model that goes on calling the tools gets one turn without tools. If it writes nothing even then, the answer is a list
of what was found, with the sources.
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


class SpentBudget(AgentMiddleware[Any, Any, Any]):
    """`max_calls` says how often each tool with a budget may be called for a question."""

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
    """How many turns since the person's last message had nothing but calls that were one too many."""
    calls: Counter[str] = Counter()
    wasted = 0
    for turn in turns_of_question(messages):
        names = [call["name"] for call in turn.tool_calls]
        refused = 0
        for name in names:
            calls[name] += 1
            refused += name in max_calls and calls[name] > max_calls[name]
        wasted += bool(names) and refused == len(names)
    return wasted
