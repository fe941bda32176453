"""A streamed answer of the OpenAI API as the answer to the same request without streaming."""

from __future__ import annotations

import json
from typing import Any


def whole_answer(stream: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    completion: dict[str, Any] = {}
    finish = None
    for line in stream.splitlines():
        data = line.removeprefix("data: ")
        if data in (line, "[DONE]"):
            continue
        chunk = json.loads(data)
        completion |= {key: value for key, value in chunk.items() if key != "choices" and value is not None}
        for choice in chunk["choices"]:
            finish = choice["finish_reason"] or finish
            delta = choice["delta"]
            for key in ("content", "refusal", "reasoning_content"):
                if delta.get(key):
                    message[key] = (message.get(key) or "") + delta[key]
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
                call["id"] = piece.get("id") or call.get("id")
                for key, value in piece["function"].items():
                    call["function"][key] += value or ""
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**completion, "object": "chat.completion", "choices": [choice]}
