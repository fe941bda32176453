"""The history that a model is sent: always one that providers accept, whatever happened to the conversation.

Each assistant turn with calls is followed at once by exactly one result for each call, ids are unique, the first
message is the user's and none is empty. Calls and results are matched by turn and place, because models reuse ids. The
stored conversation stays as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from ai_platform_engineering.approvals.edited_call import with_notes
from ai_platform_engineering.graphs.tool_call_blocks import Call, calls_of, with_calls

Message = TypeVar("Message", SystemMessage, HumanMessage, AIMessage, ToolMessage)

OUTCOME_UNKNOWN: Final = (
    "This call was interrupted and its outcome is unknown: it may have taken effect. Check before you repeat it."
)
REPEATABLE: Final = "This call was interrupted before its result came. It only reads, so it can be repeated."

_EMPTY_MESSAGE: Final = "(empty message)"
_EMPTY_RESULT: Final = "(no output)"
_START: Final = "(start of the conversation)"
_ID_LENGTH: Final = 32
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})


class History(AgentMiddleware[Any, Any, Any]):
    """Sends the model a valid history, with notes on edited calls."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        messages = with_notes(valid_history(request.messages, repeatable=_read_only(request.tools)))
        return await handler(request if messages is request.messages else request.override(messages=messages))


def valid_history(messages: list[AnyMessage], *, repeatable: Collection[str] = ()) -> list[AnyMessage]:
    """The messages as providers accept them; the very same list if they would already.

    `repeatable` names tools that only read.
    """
    ids = _Ids(messages)
    repaired = [*_from_user(_repaired(messages, ids, repeatable))] if messages else []
    is_same = len(repaired) == len(messages) and all(new is old for new, old in zip(repaired, messages, strict=True))
    return messages if is_same else repaired


def unanswered(messages: Sequence[AnyMessage]) -> list[Call]:
    """The calls of the last assistant turn that have no result."""
    turns = _turns(messages)
    last = max((place for place, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    if last not in turns:
        return []
    turn = turns[last]
    return [call for call, result in zip(turn.calls, turn.results, strict=True) if result is None]


@dataclass(slots=True)
class _Turn:
    """An assistant turn with calls, and the result of each, where there is one."""

    calls: list[Call]
    results: list[ToolMessage | None]
    arrived: list[int] = field(default_factory=list)
    """Places of the calls in the order in which their results come."""

    def has(self, call_id: str) -> bool:
        return any(call.id == call_id for call in self.calls)

    def take(self, result: ToolMessage) -> None:
        """A second result for a call is dropped: it can only be a repetition."""
        for place, call in enumerate(self.calls):
            if call.id == result.tool_call_id and self.results[place] is None:
                self.results[place] = result
                self.arrived.append(place)
                return


class _Ids:
    """Gives each call an id of its own: its own, where no earlier call has it."""

    def __init__(self, messages: Sequence[AnyMessage]) -> None:
        self._taken: set[str] = set()
        turns = (message for message in messages if isinstance(message, AIMessage))
        self._known = {call_id for turn in turns for call_id in _extract_tool_call_ids(turn)}

    def distinct(self, call: Call) -> Call:
        if call.id and call.id not in self._taken:
            self._taken.add(call.id)
            return call
        base, number = call.id[:_ID_LENGTH] or "call", 2
        while (fresh := f"{base}-{number}") in self._known or fresh in self._taken:
            number += 1
        self._taken.add(fresh)
        return Call(fresh, call.name, call.args)


def _extract_tool_call_ids(message: AIMessage) -> list[str]:
    """The ids of a turn's calls, from `tool_calls`, content blocks and `additional_kwargs` alike."""
    return [call.id for call in calls_of(message)]


def _turns(messages: Sequence[AnyMessage]) -> dict[int, _Turn]:
    """The assistant turns with calls, by place. A result belongs to the last turn before it that calls with its id."""
    turns: dict[int, _Turn] = {}
    for place, message in enumerate(messages):
        match message:
            case AIMessage() if calls := calls_of(message):
                turns[place] = _Turn(calls, [None] * len(calls))
            case ToolMessage():
                owner = next((turn for turn in reversed(turns.values()) if turn.has(message.tool_call_id)), None)
                if owner is not None:
                    owner.take(message)
            case _:
                pass
    return turns


def _repaired(messages: Sequence[AnyMessage], ids: _Ids, repeatable: Collection[str]) -> Iterator[AnyMessage]:
    turns = _turns(messages)
    is_opening = True
    for place, message in enumerate(messages):
        match message:
            case SystemMessage():
                content = _cleaned(message.content)
                if content:
                    yield _with_content(message, content) if is_opening else HumanMessage(content, id=message.id)
                continue
            case HumanMessage():
                yield _with_content(message, _cleaned(message.content) or _EMPTY_MESSAGE)
            case AIMessage() if place in turns:
                yield from _turn(message, turns[place], ids, repeatable)
            case AIMessage():
                content = _cleaned(message.content)
                if _says_something(content):
                    yield _with_content(message, content)
                else:
                    continue
            case ToolMessage():
                continue
            case _:
                yield message
        is_opening = False


def _turn(message: AIMessage, turn: _Turn, ids: _Ids, repeatable: Collection[str]) -> Iterator[AnyMessage]:
    calls = [ids.distinct(call) for call in turn.calls]
    yield with_calls(_with_content(message, _cleaned(message.content)), turn.calls, calls)
    missing = [place for place, result in enumerate(turn.results) if result is None]
    for place in [*turn.arrived, *missing]:
        yield _result(calls[place], turn.results[place], repeatable)


def _result(call: Call, result: ToolMessage | None, repeatable: Collection[str]) -> ToolMessage:
    if result is None:
        text = REPEATABLE if call.name in repeatable else OUTCOME_UNKNOWN
        return ToolMessage(text, name=call.name, tool_call_id=call.id, status="error")
    content = _cleaned(result.content) or _EMPTY_RESULT
    if result.tool_call_id == call.id:
        return _with_content(result, content)
    return result.model_copy(update={"tool_call_id": call.id, "content": content})


def _from_user(messages: Iterator[AnyMessage]) -> Iterator[AnyMessage]:
    """The messages, the first after the instructions being the user's."""
    is_opening = True
    for message in messages:
        if is_opening and not isinstance(message, SystemMessage):
            is_opening = False
            if not isinstance(message, HumanMessage):
                yield HumanMessage(_START)
        yield message
    if is_opening:
        yield HumanMessage(_START)


def _cleaned(content: Any) -> Any:
    """Content without blank texts, which providers refuse; bare strings in a list, which some clients fail on, become
    blocks."""
    if isinstance(content, str):
        return content if content.strip() else ""
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return [block for block in blocks if not _is_blank(block)]


def _is_blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _says_something(content: Any) -> bool:
    """Thoughts alone are no message: providers want something after them."""
    if isinstance(content, str):
        return bool(content)
    return any(block.get("type") not in _THOUGHTS for block in content)


def _with_content(message: Message, content: Any) -> Message:
    return message if content == message.content else message.model_copy(update={"content": content})


def _read_only(tools: Sequence[BaseTool | dict[str, Any]]) -> frozenset[str]:
    named = (tool for tool in tools if isinstance(tool, BaseTool))
    return frozenset(tool.name for tool in named if (tool.metadata or {}).get("read_only") is True)
