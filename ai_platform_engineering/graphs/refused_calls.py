"""Refuses tool calls whose turn was cut off or whose arguments are not valid JSON.

`CheckedTurns` finds them and records them in the message's metadata. `RefusedCalls` returns an error as their result,
so the conversation stays valid and the model can call again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.types import Command
from pydantic import ValidationError

from ai_platform_engineering.compat.langchain_openai import RAW_ARGUMENTS
from ai_platform_engineering.llm.finish_reasons import CUT_OFF, MALFORMED_CALL, cut_reason
from ai_platform_engineering.llm.streamed_calls import rewritten_block, streamed_calls
from ai_platform_engineering.llm.visible_message import visible_message

logger = logging.getLogger(__name__)

REFUSED: Final = "refused_calls"
"""Key in `response_metadata`: the reason for each refused call, by its id."""

_INVALID_ARGUMENTS: Final = "invalid_arguments"
_UNNAMED: Final = "unnamed_tool"

# Each reason in two wordings: for people, and for the model.
_REASONS: Final[Mapping[str, tuple[str, str]]] = {
    "output_length": (
        "the model's turn was cut off by its output limit",
        "your turn was cut off by the output limit. Make the call again, with less text before it and shorter "
        "arguments.",
    ),
    "content_filter": (
        "the content filter stopped the model's turn",
        "a content filter stopped your turn. Make the call again without the filtered content, or answer without it.",
    ),
    "refusal": (
        "the model's turn ended with a refusal",
        "your turn ended with a refusal. Answer without this call.",
    ),
    "stream_broken": (
        "the connection to the model ended in the middle of its turn",
        "the connection ended in the middle of your turn. Make the call again.",
    ),
    _INVALID_ARGUMENTS: (
        "its arguments were not valid JSON",
        "its arguments were not valid JSON. Make the call again with one JSON object as arguments.",
    ),
}

Result = ToolMessage | Command[Any]


class RefusedCalls(AgentMiddleware[Any, Any, Any]):
    """Returns an error for refused calls. It must be outermost, because a call that does not run needs no approval."""

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        call = request.tool_call
        turn = next(
            (message for message in reversed(request.state["messages"]) if isinstance(message, AIMessage)), None
        )
        reason = _refused(turn).get(call["id"] or "") if turn is not None else None
        if reason is None:
            return await handler(request)
        for_people, for_model = _REASONS[reason]
        return ToolMessage(
            f"This call was not executed: {for_model}",
            name=call["name"],
            tool_call_id=call["id"] or "",
            status="error",
            artifact={"reason": f"not executed: {for_people}"},
        )


class CheckedTurns(AgentMiddleware[Any, Any, Any]):
    """Checks each turn as the provider returned it. Only `MeteredCalls` is inside it, so that other middleware sees
    checked messages."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        try:
            response = await handler(request)
        except ValidationError:
            # LangChain's class for OpenAI Responses raises for arguments that are JSON but not an object.
            logger.warning("The model's turn could not be read", exc_info=True)
            return ModelResponse(result=[AIMessage("", response_metadata=dict(MALFORMED_CALL))])
        result = [
            checked(message, request.messages) if isinstance(message, AIMessage) else message
            for message in response.result
        ]
        return ModelResponse(result=result, structured_response=response.structured_response)


def checked(message: AIMessage, earlier: Sequence[AnyMessage] = ()) -> AIMessage:
    """The message without thinking blocks. Its calls get ids that are unique in the conversation. Refused calls are
    recorded in its metadata."""
    cut = cut_reason(message)
    message = visible_message(message)
    if cut is not None:
        message = message.model_copy(update={"response_metadata": message.response_metadata | {CUT_OFF: cut}})
    if not message.tool_calls and not message.invalid_tool_calls:
        return message
    return _with_checked_calls(message, cut, _call_ids(earlier))


def refused_turns(messages: Sequence[AnyMessage]) -> list[str]:
    """The reasons of the latest consecutive turns in which every call was refused, newest first."""
    reasons: list[str] = []
    for message in reversed(messages):
        if message.type == "human":
            break
        if isinstance(message, AIMessage):
            refused = _refused(message)
            if not message.tool_calls or len(refused) < len(message.tool_calls):
                break
            reasons.append(next(iter(refused.values())))
    return reasons


def _with_checked_calls(message: AIMessage, cut: str | None, taken: Collection[str]) -> AIMessage:
    ids = set(taken)
    calls: list[ToolCall] = []
    refused: dict[str, str] = {}
    renamed: dict[str, str] = {}
    blocks = [*message.content] if isinstance(message.content, list) else []
    for call in streamed_calls(message):
        call_id = call.id if call.id and call.id not in ids else f"call_{uuid4().hex[:24]}"
        ids.add(call_id)
        reason = cut or (None if call.is_json else _INVALID_ARGUMENTS)
        if reason is not None:
            refused[call_id] = reason
        if call_id != call.id:
            renamed[call.id] = call_id
        calls.append(ToolCall(name=call.name or _UNNAMED, args=dict(call.args), id=call_id, type="tool_call"))
        if call.block_index is not None and (reason is not None or call_id != call.id):
            blocks[call.block_index] = rewritten_block(blocks[call.block_index], call_id, call.args if reason else None)
    others = {key: _renamed(value, renamed) for key, value in message.additional_kwargs.items() if key != RAW_ARGUMENTS}
    if not (refused or renamed):
        return message.model_copy(update={"additional_kwargs": others})
    # The OpenAI copy of the same calls, which would contradict the checked ones.
    others.pop("tool_calls", None)
    return message.model_copy(
        update={
            "content": blocks if isinstance(message.content, list) else message.content,
            "tool_calls": calls,
            "invalid_tool_calls": [],
            "additional_kwargs": others,
            "response_metadata": message.response_metadata | ({REFUSED: refused} if refused else {}),
        }
    )


def _call_ids(messages: Sequence[AnyMessage]) -> set[str]:
    return {str(call["id"]) for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}


def _renamed(value: Any, renamed: Mapping[str, str]) -> Any:
    """Gemini's chat class stores call signatures in a mapping by call id: add entries for the new ids."""
    if isinstance(value, Mapping) and (known := renamed.keys() & value.keys()):
        return {**value, **{renamed[key]: value[key] for key in known}}
    return value


def _refused(message: AIMessage) -> Mapping[str, str]:
    recorded = message.response_metadata.get(REFUSED)
    return recorded if isinstance(recorded, Mapping) else {}
