"""Ensures that every run ends with an answer: a last turn without tools when the steps run out or the answer is
empty."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.config import get_stream_writer

from ai_platform_engineering.compat.agent_middleware import RemainingSteps, overridden
from ai_platform_engineering.final_results import CUT_SENTENCES, DECLINED, CutReason, cut_reason_of
from ai_platform_engineering.graphs.refused_calls import refused_turns
from ai_platform_engineering.llm.finish_reasons import CUT_OFF, cut_reason, has_malformed_call
from ai_platform_engineering.runs.answers import gathered_text
from ai_platform_engineering.runs.translation import LimitReached

RECURSION_LIMIT = "recursion_limit"

# A model turn, its tools and the next model turn take three steps. With fewer left, this turn must be the answer.
_STEPS_FOR_ANOTHER_ROUND = 3

# After this many turns in a row whose calls were all refused, the model gets no further attempt.
_MAX_REFUSED_TURNS = 3

_INSTRUCTION_ID = "last-turn"

_OUT_OF_STEPS = (
    "You have used all the steps you may take. Do not call any tool. Write the answer now from what you have "
    "gathered above, and say plainly what is not finished."
)
_NOTHING_WRITTEN = "You have not written anything. Write the answer now from what you have gathered above."
_CALL_NOT_READABLE = "Your tool call could not be read. Make it again with valid JSON arguments, or write the answer."
_CALLS_REFUSED = (
    "Your last tool calls could not be executed. Do not call any tool. Write the answer now from what you have "
    "gathered above, and say plainly what is not finished."
)


class LastTurnState(AgentState[Any]):
    remaining_steps: RemainingSteps


class LastTurn(AgentMiddleware[LastTurnState, Any, Any]):
    state_schema = LastTurnState

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        remaining = request.state.get("remaining_steps")
        if isinstance(remaining, int) and remaining < _STEPS_FOR_ANOTHER_ROUND:
            get_stream_writer()(LimitReached(RECURSION_LIMIT))
            response = await handler(without_tools(request, _OUT_OF_STEPS))
            note = "The step limit was reached before the work was finished."
            return answer_only(response, lambda: gathered(request, note))
        reasons = refused_turns(request.messages)
        if len(reasons) >= _MAX_REFUSED_TURNS:
            response = await handler(without_tools(request, _CALLS_REFUSED))
            note = "The model's tool calls could not be executed."
            return answer_only(response, lambda: gathered(request, note), cut_reason_of(reasons[0]))
        response = await handler(request)
        if _call_was_dropped(response) and not _is_last(request):
            response = await handler(_instructed(request, _CALL_NOT_READABLE))
        # A middleware outside this one that made this the last turn replaces an empty answer itself.
        if _is_empty(response) and not _is_last(request):
            if _declined(response):
                return answer_only(response, lambda: gathered_text(request.messages))
            response = await handler(without_tools(request, _NOTHING_WRITTEN))
            return answer_only(response, lambda: gathered(request, "The model wrote no answer of its own."))
        return response


def without_tools(request: ModelRequest[Any], instruction: str) -> ModelRequest[Any]:
    """The request as a last turn: without tools, with an instruction to answer."""
    return overridden(_instructed(request, instruction), tools=[], tool_choice=None, response_format=None)


def _instructed(request: ModelRequest[Any], instruction: str) -> ModelRequest[Any]:
    return overridden(request, messages=[*request.messages, HumanMessage(instruction, id=_INSTRUCTION_ID)])


def _is_last(request: ModelRequest[Any]) -> bool:
    return bool(request.messages) and request.messages[-1].id == _INSTRUCTION_ID


def _is_empty(response: ModelResponse[Any]) -> bool:
    """Whether the turn has no text, or only text before a tool call that the provider could not parse."""
    message = _ai_message(response)
    return (
        message is not None
        and not message.tool_calls
        and (has_malformed_call(message) or not str(message.text).strip())
        and response.structured_response is None
    )


def _call_was_dropped(response: ModelResponse[Any]) -> bool:
    message = _ai_message(response)
    return message is not None and not message.tool_calls and has_malformed_call(message)


def _declined(response: ModelResponse[Any]) -> bool:
    message = _ai_message(response)
    return message is not None and cut_reason(message) in DECLINED


def answer_only(
    response: ModelResponse[Any], otherwise: Callable[[], str], cut: CutReason | None = None
) -> ModelResponse[Any]:
    """The response as an answer without tool calls. If it has no text of its own, `otherwise` provides the text.

    `cut` is the reason why earlier turns were cut off: then the answer is incomplete even if this turn is not.
    """
    message = _ai_message(response)
    if message is None:
        return ModelResponse(result=[AIMessage(otherwise())])
    text, cut = str(message.text), cut_reason(message) or cut
    if message.tool_calls or not text.strip():
        declined = CUT_SENTENCES[cut] if cut and cut in DECLINED else ""
        text = "\n\n".join(part for part in (text.strip() and text, declined, otherwise()) if part)
    return ModelResponse(result=[AIMessage(text, id=message.id, response_metadata={CUT_OFF: cut} if cut else {})])


def gathered(request: ModelRequest[Any], note: str) -> str:
    """The note, followed by the results of the request's tools."""
    results = gathered_text(request.messages)
    return f"{note} What was gathered:\n\n{results}" if results else f"{note} Nothing had been gathered yet."


def _ai_message(response: ModelResponse[Any]) -> AIMessage | None:
    return next((message for message in response.result if isinstance(message, AIMessage)), None)
