"""What OpenAI refuses a chat request for, as its API answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NOT_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")


def refusal(body: Mapping[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """The status and the body of the answer to a request that is not valid; None for one that is."""
    problem = next(_problems(body), None)
    if problem is None:
        return None
    return 400, {"error": {"message": problem, "type": "invalid_request_error", "param": None, "code": None}}


def _problems(body: Mapping[str, Any]) -> Iterator[str]:
    tools = body.get("tools") or []
    if len(tools) > 128:
        yield f"Invalid 'tools': array too long. Expected an array with maximum length 128, got length {len(tools)}."
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) != len(names):
        yield "Tool names must be unique."
    for place, tool in enumerate(tools):
        yield from _name_problems(f"tools[{place}].function.name", tool["function"]["name"])
        schema = tool["function"].get("parameters", {})
        yield from (f"Invalid schema for function: {problem}" for problem in _schema_problems(schema))
    for place, message in enumerate(body["messages"]):
        for number, call in enumerate(message.get("tool_calls") or ()):
            yield from _name_problems(f"messages[{place}].tool_calls[{number}].function.name", call["function"]["name"])


def _name_problems(where: str, name: str) -> Iterator[str]:
    if not NAME.fullmatch(name):
        yield f"Invalid '{where}': string does not match pattern '^[a-zA-Z0-9_-]+$', or is longer than 64."


def _schema_problems(schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object":
        yield f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    if found := [key for key in NOT_AT_THE_TOP if key in schema]:
        yield f"schema must have type 'object' and not have {found} at the top level."
    if "properties" not in schema:
        yield "object schema missing properties."
    yield from _array_problems(schema)


def _array_problems(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if schema.get("type") == "array" and "items" not in schema:
            yield "array schema missing items."
        for part in schema.values():
            yield from _array_problems(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _array_problems(part)
