"""Anthropic Messages, streamed: named server-sent events around content blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, pairwise
from typing import Any

from tests.llm.provider_shapes.turns import Exchange, WireFormat, WireTurn, paired, sse

SIGNATURE = "EqQBCkYIBBgCKkD-signature-of-the-thinking"

_REASONS = {"length": "max_tokens", "filter": "refusal", "refusal": "refusal"}
_numbers = count(1)


def encode(turn: WireTurn) -> bytes:
    return "".join(line for event in _events(turn) for line in sse(event, named=True)).encode()


def _events(turn: WireTurn) -> Iterator[dict[str, Any]]:
    message = {
        "id": f"msg_{next(_numbers):04}",
        "type": "message",
        "role": "assistant",
        "model": "claude-shape",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 12, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    yield {"type": "ping"}
    index = -1
    if turn.thinking:
        index += 1
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": turn.thinking}]
        deltas.append({"type": "signature_delta", "signature": SIGNATURE})
        yield from _block(index, start, deltas)
    if turn.text:
        index += 1
        yield from _block(index, {"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in turn.text])
    for call in turn.calls:
        index += 1
        start = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        pieces = ["", *call.pieces]
        yield from _block(index, start, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces])
    if turn.end == "broken":
        return
    reason = _REASONS.get(turn.end, "tool_use" if turn.calls else "end_turn")
    delta: dict[str, Any] = {"stop_reason": reason, "stop_sequence": None}
    if turn.refusal:
        delta["stop_details"] = {"type": "refusal", "category": "cyber", "explanation": turn.refusal}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def _block(index: int, start: Mapping[str, Any], deltas: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def history(body: Mapping[str, Any]) -> list[Exchange]:
    found: list[Exchange] = []
    messages = [*body["messages"], {"role": "user", "content": []}]
    for message, after in pairwise(messages):
        blocks = message["content"] if isinstance(message["content"], list) else []
        calls = [Exchange(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
        assert all(isinstance(call.arguments, dict) for call in calls)
        if calls:
            answers = [block for block in after["content"] if block["type"] == "tool_result"]
            found += paired(calls, {block["tool_use_id"]: str(block["content"]) for block in answers})
    return found


ANTHROPIC = WireFormat(
    "anthropic",
    "langchain_anthropic",
    {"LLM_PROVIDER": "anthropic-claude", "ANTHROPIC_API_KEY": "not-a-key", "ANTHROPIC_MODEL_NAME": "claude-shape"},
    "ANTHROPIC_BASE_URL",
    "",
    "text/event-stream",
    encode,
    history,
)
