"""`tool_choice`: replies that must be a tool call, for example for structured output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.offline_model.english.lexical import identifier_words
from ai_platform_engineering.offline_model.english.vocabulary import word_set
from ai_platform_engineering.offline_model.messages.tools import CONTROL_TOOLS, BoundTool, ModelReply, PlannedCall
from ai_platform_engineering.offline_model.tool_calls.schemas import Property, profile

_ANSWER_WORDS = word_set("answer response result format output reply final structured")

ToolChoice = str | bool | Mapping[str, Any] | None


def forced_tool(choice: ToolChoice, tools: Sequence[BoundTool]) -> BoundTool | None:
    """The tool that `tool_choice` requires; None when the model may choose."""
    match choice:
        case None | False | "auto" | "none":
            return None
        case True | "any" | "required":
            own = [tool for tool in tools if tool.name not in CONTROL_TOOLS]
            answering = [tool for tool in own if _ANSWER_WORDS.intersection(identifier_words(tool.name))]
            return next(iter(answering or own[-1:]), None)
        case str():
            return next((tool for tool in tools if tool.name == choice), None)
        case _:
            name = choice.get("function", choice).get("name")
            return next((tool for tool in tools if tool.name == name), None)


def as_call(reply: ModelReply, tool: BoundTool) -> ModelReply:
    """The reply's text as a call of `tool`. A reply that already calls tools is unchanged."""
    if reply.calls:
        return reply
    arguments = {item.name: _placeholder(item, reply.text) for item in profile(tool).properties if item.required}
    return ModelReply(calls=(PlannedCall(tool.name, arguments),))


def _placeholder(item: Property, text: str) -> Any:
    match "choice" if item.choices else item.type:
        case "choice":
            return item.choices[0]
        case "boolean":
            return True
        case "integer" | "number":
            return int(item.minimum or 0)
        case "array":
            return []
        case "object":
            return {member.name: _placeholder(member, text) for member in item.members if member.required}
        case _:
            return text
