"""Repairs the message history before it is sent to a model, so that every provider accepts it.

In a valid history each assistant turn with calls is directly followed by one result per call, call ids are unique, the
first message is the user's, and no message is empty. Calls and results are matched by turn and position, because
models reuse ids. The stored conversation is not changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from ai_platform_engineering.approvals.edited_call import with_notes
from ai_platform_engineering.compat.agent_middleware import overridden
from ai_platform_engineering.graphs.tool_call_blocks import MessageCall, calls_of, has_copies, valid_name, with_calls

Message = TypeVar("Message", SystemMessage, HumanMessage, AIMessage, ToolMessage)

OUTCOME_UNKNOWN: Final = (
    "This call was interrupted and its outcome is unknown: it may have taken effect. Check before you repeat it."
)
REPEATABLE: Final = "This call was interrupted before its result came. It only reads, so it can be repeated."

_EMPTY_MESSAGE: Final = "(empty message)"
_EMPTY_RESULT: Final = "(no output)"
_START: Final = "(start of the conversation)"
_ID_LENGTH: Final = 32
_THINKING_BLOCKS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})


class History(AgentMiddleware[Any, Any, Any]):
    """Sends the model a valid history, with notes about calls that a person edited."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        messages = with_notes(valid_history(request.messages, repeatable=_read_only(request.tools)))
        return await handler(request if messages is request.messages else overridden(request, messages=messages))


def valid_history(messages: list[AnyMessage], *, repeatable: Collection[str] = ()) -> list[AnyMessage]:
    """The repaired messages; the same list object if it is valid already. `repeatable` names tools that only read."""
    if _is_plain_and_valid(messages):
        return messages
    repaired = [*_from_user(_repaired(messages, repeatable))] if messages else []
    is_same = len(repaired) == len(messages) and all(new is old for new, old in zip(repaired, messages, strict=True))
    return messages if is_same else repaired


def _is_plain_and_valid(messages: Sequence[AnyMessage]) -> bool:
    """Whether nothing has to be repaired in messages whose content is text and whose calls have no copies.

    Most histories are like that, every model call reads all messages, and a repair takes five times as long.
    """
    taken: set[str] = set()
    waiting: set[str] = set()
    is_opening = True
    for message in messages:
        content = message.content
        # `type` distinguishes messages: `isinstance` takes longer, as their classes are abstract.
        if not isinstance(content, str) or (content.isspace() if content else message.type != "ai"):
            return False
        match message.type:
            case "ai" if not (waiting or is_opening or has_copies(message)):
                if not (message.tool_calls or content):
                    return False
                for call in message.tool_calls:
                    if not call["id"] or call["id"] in taken or valid_name(call["name"]) != call["name"]:
                        return False
                    taken.add(call["id"])
                    waiting.add(call["id"])
            case "tool" if message.tool_call_id in waiting:
                waiting.remove(message.tool_call_id)
            case "human" if not waiting:
                is_opening = False
            case "system" if is_opening:
                pass
            case _:
                return False
    return not (waiting or is_opening)


def unanswered_calls(messages: Sequence[AnyMessage]) -> list[MessageCall]:
    """The calls of the last assistant turn that have no result."""
    turns = _turns(messages)
    last = max((place for place, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    if last not in turns:
        return []
    turn = turns[last]
    return [call for call, result in zip(turn.calls, turn.results, strict=True) if result is None]


def call_groups(messages: Sequence[AnyMessage]) -> Iterator[tuple[AIMessage, list[ToolMessage], bool]]:
    """The assistant turns with calls: the message, the results that it has, and whether every call has one."""
    for place, turn in _turns(messages).items():
        message, results = messages[place], [result for result in turn.results if result is not None]
        if isinstance(message, AIMessage):
            yield message, results, len(results) == len(turn.calls)


@dataclass(slots=True)
class _CallTurn:
    """An assistant turn with calls. A call that has no result yet has None."""

    calls: list[MessageCall]
    results: list[ToolMessage | None]
    arrived: list[int] = field(default_factory=list)
    """Positions of the calls, in the order of their results."""

    def has(self, call_id: str) -> bool:
        return any(call.id == call_id for call in self.calls)

    def take(self, result: ToolMessage) -> None:
        """Match a result with its call. A second result for the same call is a repetition and is dropped."""
        for place, call in enumerate(self.calls):
            if call.id == result.tool_call_id and self.results[place] is None:
                self.results[place] = result
                self.arrived.append(place)
                return


class _Ids:
    """Makes call ids unique: a call keeps its id unless an earlier call has the same one."""

    def __init__(self, turns: Iterable[_CallTurn]) -> None:
        self._taken: set[str] = set()
        self._known = {call.id for turn in turns for call in turn.calls}

    def distinct(self, call: MessageCall) -> MessageCall:
        if call.id and call.id not in self._taken:
            self._taken.add(call.id)
            return call
        base, number = call.id[:_ID_LENGTH] or "call", 2
        while (fresh := f"{base}-{number}") in self._known or fresh in self._taken:
            number += 1
        self._taken.add(fresh)
        return MessageCall(fresh, call.name, call.args)


def _turns(messages: Sequence[AnyMessage]) -> dict[int, _CallTurn]:
    """The assistant turns with calls, by position. A result belongs to the latest turn before it with a call of its
    id."""
    turns: dict[int, _CallTurn] = {}
    for place, message in enumerate(messages):
        match message:
            case AIMessage() if calls := calls_of(message):
                turns[place] = _CallTurn(calls, [None] * len(calls))
            case ToolMessage():
                owner = next((turn for turn in reversed(turns.values()) if turn.has(message.tool_call_id)), None)
                if owner is not None:
                    owner.take(message)
            case _:
                pass
    return turns


def _repaired(messages: Sequence[AnyMessage], repeatable: Collection[str]) -> Iterator[AnyMessage]:
    turns = _turns(messages)
    ids = _Ids(turns.values())
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
                if _is_sendable(content):
                    yield _with_content(message, content)
                else:
                    continue
            case ToolMessage():
                continue
            case _:
                yield message
        is_opening = False


def _turn(message: AIMessage, turn: _CallTurn, ids: _Ids, repeatable: Collection[str]) -> Iterator[AnyMessage]:
    calls = [ids.distinct(call) for call in turn.calls]
    yield with_calls(_with_content(message, _cleaned(message.content)), turn.calls, calls)
    missing = [place for place, result in enumerate(turn.results) if result is None]
    for place in [*turn.arrived, *missing]:
        yield _result(calls[place], turn.results[place], repeatable)


def _result(call: MessageCall, result: ToolMessage | None, repeatable: Collection[str]) -> ToolMessage:
    if result is None:
        text = REPEATABLE if call.name in repeatable else OUTCOME_UNKNOWN
        return ToolMessage(text, name=call.name, tool_call_id=call.id, status="error")
    content = _cleaned(result.content) or _EMPTY_RESULT
    if result.tool_call_id == call.id:
        return _with_content(result, content)
    return result.model_copy(update={"tool_call_id": call.id, "content": content})


def _from_user(messages: Iterator[AnyMessage]) -> Iterator[AnyMessage]:
    """The messages, with a user message inserted if the first one after the instructions is not the user's."""
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
    """Content without blank text, which providers refuse. Bare strings in a list, on which some clients fail, become
    text blocks."""
    if isinstance(content, str):
        return content if content.strip() else ""
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return [block for block in blocks if not _is_blank(block)]


def _is_blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _is_sendable(content: Any) -> bool:
    """Providers refuse a message that has thinking blocks only."""
    if isinstance(content, str):
        return bool(content)
    return any(block.get("type") not in _THINKING_BLOCKS for block in content)


def _with_content(message: Message, content: Any) -> Message:
    return message if content == message.content else message.model_copy(update={"content": content})


def _read_only(tools: Sequence[BaseTool | dict[str, Any]]) -> frozenset[str]:
    named = (tool for tool in tools if isinstance(tool, BaseTool))
    return frozenset(tool.name for tool in named if (tool.metadata or {}).get("read_only") is True)
