"""Answers that have to be a tool call, as when an answer of a given form is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.offline_model.language import identifier_words
from ai_platform_engineering.offline_model.schemas import Property, profile
from ai_platform_engineering.offline_model.tools import STEERING_TOOLS, Call, Reply, Tool
from ai_platform_engineering.offline_model.vocabulary import word_set

_ANSWER_WORDS = word_set("answer response result format output reply final structured")

ToolChoice = str | bool | Mapping[str, Any] | None


def forced_tool(choice: ToolChoice, tools: Sequence[Tool]) -> Tool | None:
    """The tool an answer has to be given with, if one is asked for."""
    match choice:
        case None | False | "auto" | "none":
            return None
        case True | "any" | "required":
            own = [tool for tool in tools if tool.name not in STEERING_TOOLS]
            answering = [tool for tool in own if _ANSWER_WORDS.intersection(identifier_words(tool.name))]
            return next(iter(answering or own[-1:]), None)
        case str():
            return next((tool for tool in tools if tool.name == choice), None)
        case _:
            name = choice.get("function", choice).get("name")
            return next((tool for tool in tools if tool.name == name), None)


def as_call(reply: Reply, tool: Tool) -> Reply:
    """The reply's text in the form that the tool asks for. A reply that calls tools anyway stays as it is."""
    if reply.calls:
        return reply
    arguments = {item.name: _placeholder(item, reply.text) for item in profile(tool).properties if item.required}
    return Reply(calls=(Call(tool.name, arguments),))


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
