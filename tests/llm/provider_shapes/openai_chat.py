"""OpenAI Chat Completions, streamed: `chat.completion.chunk` objects as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.llm.openai_whole import whole_answer
from tests.llm.provider_shapes.turns import Exchange, WireFormat, WireTurn, paired, sse

_REASONS = {"length": "length", "filter": "content_filter"}


def encode(turn: WireTurn) -> bytes:
    return "".join(_events(turn)).encode()


def _events(turn: WireTurn) -> Iterator[str]:
    yield from _chunk({"role": "assistant", "content": "", "refusal": None})
    if turn.thinking:
        # The extension of DeepSeek, vLLM and others.
        yield from _chunk({"reasoning_content": turn.thinking})
    for piece in turn.text:
        yield from _chunk({"content": piece})
    for piece in turn.refusal.split(" ") if turn.refusal else ():
        yield from _chunk({"refusal": f"{piece} "})
    for index, call in enumerate(turn.calls):
        first = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield from _chunk({"tool_calls": [{"index": index, **first}]})
        for piece in call.pieces:
            yield from _chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if turn.end == "broken":
        return
    yield from _chunk({}, _REASONS.get(turn.end, "tool_calls" if turn.calls else "stop"))
    usage = {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}
    yield from sse({**_ENVELOPE, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


_ENVELOPE = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1-2025-04-14"}


def _chunk(delta: Mapping[str, Any], reason: str | None = None) -> Iterator[str]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return sse({**_ENVELOPE, "choices": [choice], "usage": None})


def history(body: Mapping[str, Any]) -> list[Exchange]:
    found: list[Exchange] = []
    messages = body["messages"]
    for place, message in enumerate(messages):
        calls = [
            Exchange(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls") or ()
        ]
        if calls:
            results = messages[place + 1 : place + 1 + len(calls)]
            found += paired(calls, {result["tool_call_id"]: result["content"] for result in results})
    return found


OPENAI_CHAT = WireFormat(
    "openai-chat",
    "langchain_openai",
    {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "not-a-key", "OPENAI_MODEL_NAME": "gpt-4.1"},
    "OPENAI_ENDPOINT",
    "/v1",
    "text/event-stream",
    encode,
    history,
    lambda stream: json.dumps(whole_answer(stream.decode())).encode(),
)
