"""The knowledge base's tools as the supervisor's model has them: so many calls per question, so much of each result.

A question is one message of a person in one thread, with all that follows until the next, also across a form that had
to be answered in between. Every call is in the messages of its thread, so its number is read from there and counted
nowhere else: calls side by side differ by their place in the turn, a resumed run finds the numbers it had, no other
conversation can be mistaken for this one, and nothing is left behind.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn, Self

from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel

from ai_platform_engineering.settings import Settings

TRUNCATED: Final = "[Output truncated]"

_LIMIT_ARGUMENT: Final = "limit"


class _CapCounterMixin(BaseTool):
    """A tool that may be called `max_calls` times per question. After that it answers, as if nothing were wrong, that
    it is time to write: a model takes an error as a reason to try the next document."""

    wrapped: BaseTool
    max_calls: int
    max_chars: int

    done: ClassVar[str]
    """What the calls so far have achieved, in two words."""

    @classmethod
    def around(cls, tool: BaseTool, **limits: int) -> Self:
        described = {name: getattr(tool, name) for name in ("name", "description", "args_schema", "metadata")}
        return cls(wrapped=tool, **described, **limits)

    @property
    def args(self) -> dict[str, Any]:
        # A schema in JSON need not say that there are no properties.
        return dict(self.args_schema.get("properties") or {}) if isinstance(self.args_schema, dict) else super().args

    @property
    def cap_message(self) -> str:
        return (
            f"[{self.done}] You have reached the maximum allowed number of {self.name} calls ({self.max_calls}). "
            f"Please synthesize your answer from the documents already retrieved. Do NOT call {self.name} again."
        )

    async def _arun(self, runtime: ToolRuntime, **arguments: Any) -> str:
        if call_number(runtime.state["messages"], self.name, runtime.tool_call_id) > self.max_calls:
            return self.cap_message
        try:
            result = await self.wrapped.ainvoke(self._adjusted(arguments), runtime.config)
        except ToolException as error:
            # The reason for a failure is a result too, and may be as long as the server that gives it likes.
            raise ToolException(truncated(str(error), self.max_chars)) from error
        return truncated(result, self.max_chars)

    async def coroutine(self, runtime: ToolRuntime, **arguments: Any) -> str:
        """Under this name LangGraph looks for what a tool is to be given beside its arguments."""
        return await self._arun(runtime, **arguments)

    def _run(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{self.name} can only be called asynchronously: use ainvoke")

    def _adjusted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments


class FetchDocumentCapWrapper(_CapCounterMixin):
    """A tool that gives a whole document or page."""

    done = "Document already retrieved"


class SearchCapWrapper(_CapCounterMixin):
    """A tool that lists what there is. However many results the model asks for, it gets `max_results` at most: each
    one is a document that it may want to read next."""

    max_results: int

    done = "Search already done"

    def _adjusted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if _LIMIT_ARGUMENT not in self.args:
            return arguments
        return arguments | {_LIMIT_ARGUMENT: clamped(arguments.get(_LIMIT_ARGUMENT), self.max_results)}


def capped(tools: Iterable[BaseTool], settings: Settings) -> list[_CapCounterMixin]:
    """The tools of the knowledge base within the limits of the settings."""
    return [_capped(tool, settings) for tool in tools]


def _capped(tool: BaseTool, settings: Settings) -> _CapCounterMixin:
    max_chars = settings.rag_max_output_chars
    if tool.name.startswith("fetch"):
        return FetchDocumentCapWrapper.around(tool, max_calls=settings.fetch_document_max_calls, max_chars=max_chars)
    return SearchCapWrapper.around(
        tool, max_calls=settings.search_max_calls, max_chars=max_chars, max_results=settings.rag_max_search_results
    )


def call_number(messages: Sequence[AnyMessage], tool: str, call_id: str | None) -> int:
    """Which of the tool's calls for the question this one is, counted from 1.

    Models may give several calls the same id; each of them then counts as the last of these.
    """
    turns = turns_of_question(messages)
    earlier = sum(call["name"] == tool for turn in turns[:-1] for call in turn.tool_calls)
    latest = [call["id"] for call in turns[-1].tool_calls if call["name"] == tool] if turns else []
    places = [place for place, known in enumerate(latest, 1) if known == call_id]
    return earlier + (places[-1] if places else len(latest) + 1)


def turns_of_question(messages: Sequence[BaseMessage]) -> list[AIMessage]:
    """What the model has written since the person's last message."""
    turns: list[AIMessage] = []
    for message in reversed(messages):
        if message.type == "human":
            break
        if isinstance(message, AIMessage):
            turns.append(message)
    return turns[::-1]


def clamped(limit: object, most: int) -> int:
    """A number of results from 1 to `most`, whatever the model has sent; `most` where it is not a number."""
    try:
        number = float(limit)  # type: ignore[arg-type]  # anything may come, and TypeError is expected
    except (TypeError, ValueError, OverflowError):
        return most
    if math.isnan(number):
        return most
    return int(min(max(number, 1), most))


def truncated(result: Any, max_chars: int) -> str:
    """The result as text, cut after `max_chars` characters."""
    text = result_text(result)
    return text if len(text) <= max_chars else f"{text[:max_chars]}{TRUNCATED}"


def result_text(result: Any) -> str:
    """The text of a result in whatever shape a tool gives it: text, a message, content blocks, any object."""
    match result:
        case str():
            return result
        case {"type": "text", "text": str(text)}:
            return text
        case BaseMessage():
            return result_text(result.content)
        case (content, _) if isinstance(result, tuple):
            # How LangChain's tools give content and, for programs, an artifact.
            return result_text(content)
        case list() if any(_is_block(item) for item in result):
            return "\n".join(map(result_text, result))
        case _:
            return json.dumps(result, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _is_block(item: Any) -> bool:
    return isinstance(item, str | BaseMessage) or (isinstance(item, Mapping) and "type" in item)


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)
