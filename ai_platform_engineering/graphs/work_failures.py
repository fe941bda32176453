"""When an agent's run counts as failed, and what the failure says.

`SuccessCheck` fails a run whose model reports failure or declines, or whose tool calls all failed. It does not
interpret the wording of the answer. `CompletedToolsNote` adds the completed tools to any failure, so that the caller
does not repeat that work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from ai_platform_engineering.final_results import CUT_SENTENCES, DECLINED
from ai_platform_engineering.graphs.ask_tool import ASK_TOOL
from ai_platform_engineering.graphs.long_results import READ_TOOL
from ai_platform_engineering.graphs.workflow_step import since_question
from ai_platform_engineering.llm.finish_reasons import cut_reason
from ai_platform_engineering.runs.failures import failure_of
from ai_platform_engineering.runs.skill_calls import SKILL_TOOLS
from ai_platform_engineering.utils.errors import FailureCode, ReadableError

NOT_DONE: Final = "not_done"
"""Key in an answer's `response_metadata`: the model reports that it did not do the work. The value is a short reason.
The offline model sets it."""

_NO_WORK: Final = frozenset({ASK_TOOL, READ_TOOL, *SKILL_TOOLS})
"""Tools that do no work on a backend: they show a form, read more of a result, or read instructions."""


class NotDoneError(ReadableError):
    """The agent did not do its work. The text is the agent's answer, which may contain partial findings."""

    code = "agent"


class UnfinishedWorkError(ReadableError):
    """The agent failed after some of its tools had completed. The text is the failure, followed by their names."""

    def __init__(self, sentence: str, code: FailureCode) -> None:
        super().__init__(sentence)
        self.code = code


class SuccessCheck(AgentMiddleware[Any, Any, Any]):
    """Raises `NotDoneError` in place of an answer if the work was not done."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        response = await handler(request)
        answer = next((message for message in response.result if isinstance(message, AIMessage)), None)
        if answer is not None and not answer.tool_calls:
            # The text is not empty: `LastTurn`, which is inside this middleware, replaces empty answers.
            text = str(answer.text).strip()
            if (cut := cut_reason(answer)) in DECLINED:
                raise NotDoneError(_with_sentence(text, CUT_SENTENCES[cut]))
            if answer.response_metadata.get(NOT_DONE) or _all_failed(since_question(request.messages)):
                raise NotDoneError(text)
        return response


class CompletedToolsNote(AgentMiddleware[Any, Any, Any]):
    """Adds the names of the completed tools to a failure of the model."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        try:
            return await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            completed = _completed(request.messages)
            if not completed:
                raise
            failure = failure_of(error)
            details = f"Completed before: {', '.join(completed)}. Check before asking again."
            raise UnfinishedWorkError(f"{failure.sentence} {details}", failure.code) from error


def _with_sentence(text: str, sentence: str) -> str:
    return text if text.startswith(sentence) else f"{sentence} {text}"


def _all_failed(messages: Iterable[AnyMessage]) -> bool:
    """Whether the agent called tools that do work, and all of these calls failed."""
    results = [message for message in messages if isinstance(message, ToolMessage) and message.name not in _NO_WORK]
    return bool(results) and all(result.status == "error" for result in results)


def _completed(messages: Sequence[AnyMessage]) -> list[str]:
    """The tools that have succeeded since the last question, without those that only read instructions."""
    names: dict[str, None] = {}
    for message in messages:
        if message.type == "human":
            names.clear()
        elif isinstance(message, ToolMessage) and message.status != "error" and message.name:
            names[message.name] = None
    return [name for name in names if name not in SKILL_TOOLS]
