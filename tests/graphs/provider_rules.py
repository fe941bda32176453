"""What providers demand of the messages in a request, written from their documentation. Each rule is an assertion."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

_OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_BEDROCK_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,256}")


class InvalidHistoryError(Exception):
    """The text is the provider's own, as far as it is known."""


def check_openai_chat(messages: Sequence[Json]) -> None:
    """Chat Completions: every call is answered by the tool messages that follow its turn, and by nothing else."""
    _require(messages, "Invalid 'messages': empty array.")
    pending: set[str] = set()
    for place, message in enumerate(messages):
        role, at = message["role"], f"messages[{place}]"
        if role == "tool":
            call_id = message["tool_call_id"]
            _require(
                call_id in pending,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'.",
            )
            pending.remove(call_id)
            continue
        _require(
            not pending,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(pending)}",
        )
        calls = message.get("tool_calls")
        if calls is not None:
            _require(role == "assistant" and calls, f"Invalid '{at}.tool_calls': empty array.")
            for call in calls:
                _require(call["id"], f"Invalid '{at}.tool_calls[0].id': empty string.")
                _require(
                    _OPENAI_NAME.fullmatch(call["function"]["name"]),
                    f"Invalid '{at}.tool_calls[0].function.name': string does not match pattern.",
                )
                _require(isinstance(call["function"]["arguments"], str), f"Invalid type for '{at}.tool_calls'.")
                _require(call["id"] not in pending, f"Duplicate value for 'tool_call_id' in '{at}'.")
                pending.add(call["id"])
        elif role == "assistant":
            _require(message.get("content"), f"Invalid value for 'content': {at} expected a string, got null.")
    _require(
        not pending,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(pending)}",
    )


def check_openai_responses(items: Sequence[Json]) -> None:
    """Responses: every function call has exactly one output, after it, and every output a call."""
    open_calls: set[str] = set()
    known: set[str] = set()
    for item in items:
        match item.get("type", "message"):
            case "function_call":
                _require(item["call_id"] and item["call_id"] not in known, f"Duplicate call_id {item['call_id']}.")
                known.add(item["call_id"])
                open_calls.add(item["call_id"])
            case "function_call_output":
                _require(item["call_id"] in open_calls, f"No tool call found for function call output {item}.")
                open_calls.remove(item["call_id"])
            case _:
                pass
    _require(not open_calls, f"No tool output found for function call {', '.join(open_calls)}.")


def check_anthropic(messages: Sequence[Json]) -> None:
    """Messages API. Consecutive messages of one role are one turn."""
    turns = _turns(messages)
    _require(turns and turns[0][0] == "user", "messages: first message must use the user role")
    known: set[str] = set()
    for place, (role, blocks) in enumerate(turns):
        at = f"messages.{place}"
        _require(role in ("user", "assistant"), f"{at}: unexpected role {role!r}")
        _require(blocks, f"{at}: all messages must have non-empty content")
        for block in blocks:
            if block["type"] == "text":
                _require(block["text"].strip(), f"{at}: text content blocks must contain non-whitespace text")
        uses = [block for block in blocks if block["type"] == "tool_use"]
        _require(role == "assistant" or not uses, f"{at}: `tool_use` blocks can only be in `assistant` messages")
        for use in uses:
            _require(use["id"] not in known, f"{at}: `tool_use` ids must be unique")
            _require(_ANTHROPIC_ID.fullmatch(use["id"]), f"{at}.id: string should match pattern")
            _require(isinstance(use["input"], dict), f"{at}.input: input should be a valid dictionary")
            known.add(use["id"])
        before = turns[place - 1][1] if place else []
        asked = [block["id"] for block in before if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        _require(sorted(results) == sorted(asked), f"{at}: each `tool_use` must have one `tool_result` right after")
        kinds = [block["type"] == "tool_result" for block in blocks]
        _require(kinds == sorted(kinds, reverse=True), f"{at}: `tool_result` blocks must come first")
    _require(not any(block["type"] == "tool_use" for block in turns[-1][1]), "`tool_use` ids without `tool_result`")


def check_bedrock(messages: Sequence[Json]) -> None:
    """Converse: roles alternate, results are in the very next user turn."""
    _require(messages and messages[0]["role"] == "user", "A conversation must start with a user message.")
    for place, message in enumerate(messages):
        at = f"messages.{place}"
        role, blocks = message["role"], message["content"]
        if place:
            _require(role != messages[place - 1]["role"], f"{at}: roles must alternate")
        _require(blocks, f"The content field in the Message object at {at} is empty.")
        for block in blocks:
            _require("text" not in block or block["text"].strip(), f"The text field at {at} is blank.")
            for inner in block.get("toolResult", {}).get("content", ()):
                _require("text" not in inner or inner["text"].strip(), f"The text field of a result at {at} is blank.")
        uses = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
        _require(len({*uses}) == len(uses), f"The toolUse blocks at {at}.content contain duplicate Ids")
        _require(all(_BEDROCK_ID.fullmatch(use) for use in uses), f"{at}: invalid toolUseId")
        before = messages[place - 1]["content"] if place else []
        asked = [block["toolUse"]["toolUseId"] for block in before if "toolUse" in block]
        results = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
        _require(sorted(results) == sorted(asked), f"Expected toolResult blocks at {at}.content for: {asked}")
    _require(not any("toolUse" in block for block in messages[-1]["content"]), "toolUse without toolResult")


def _turns(messages: Sequence[Json]) -> list[tuple[str, list[Json]]]:
    turns: list[tuple[str, list[Json]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], blocks))
    return turns


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise InvalidHistoryError(otherwise)
