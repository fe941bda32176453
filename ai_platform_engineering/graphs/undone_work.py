"""Work that was not done: an agent has failed if its model says so or declines, or if none of its tool calls succeeded.

What the answer says in words is not looked at. The answer becomes the text of the failure, so that the supervisor's
model still reads what the agent found out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from ai_platform_engineering.graphs.ask_tool import ASK_TOOL
from ai_platform_engineering.graphs.long_results import READ_TOOL
from ai_platform_engineering.graphs.workflow_step import since_question
from ai_platform_engineering.limits import CUT_SENTENCES, DECLINED
from ai_platform_engineering.llm.finish_reasons import cut_reason
from ai_platform_engineering.runs.skill_calls import SKILL_TOOLS
from ai_platform_engineering.utils.errors import ReadableError

NOT_DONE: Final = "not_done"
"""Key in the `response_metadata` of an answer whose model knows that it did not do what it was asked; the value is a
short reason. The offline model sets it."""


class NotDoneError(ReadableError):
    """An agent did not do what it was asked; the text is what it said about that."""

    code = "agent"


class UndoneWork(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        response = await handler(request)
        answer = next((message for message in response.result if isinstance(message, AIMessage)), None)
        if answer is not None and not answer.tool_calls:
            # `LastTurn`, which is inside this, lets no answer through without text.
            text = str(answer.text).strip()
            if (cut := cut_reason(answer)) in DECLINED:
                raise NotDoneError(_with_sentence(text, CUT_SENTENCES[cut]))
            if answer.response_metadata.get(NOT_DONE) or _all_failed(since_question(request.messages)):
                raise NotDoneError(text)
        return response


def _with_sentence(text: str, sentence: str) -> str:
    return text if text.startswith(sentence) else f"{sentence} {text}"


def _all_failed(work: Iterable[AnyMessage]) -> bool:
    """Whether tools were called and none succeeded. Asking a person and reading on in a result is no work by itself,
    nor is reading instructions."""
    results = [message for message in work if isinstance(message, ToolMessage)]
    calls = [result for result in results if result.name not in {ASK_TOOL, READ_TOOL, *SKILL_TOOLS}]
    return bool(calls) and all(call.status == "error" for call in calls)
