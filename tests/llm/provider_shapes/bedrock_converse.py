"""Bedrock ConverseStream: Amazon's binary event stream, one message per event with a JSON payload."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from tests.llm.provider_shapes.turns import Exchange, WireFormat, WireTurn, paired

_REASONS = {
    "length": "max_tokens",
    "filter": "content_filtered",
    "refusal": "guardrail_intervened",
    "malformed": "malformed_tool_use",
}
_STRING = 7


def encode(turn: WireTurn) -> bytes:
    return b"".join(_frame(kind, payload) for kind, payload in _events(turn))


def _frame(kind: str, payload: Mapping[str, Any]) -> bytes:
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(value)) + value.encode()
        for name, value in (
            (":event-type", kind),
            (":content-type", "application/json"),
            (":message-type", "event"),
        )
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 4 + 4 + 4 + len(headers) + len(body) + 4, len(headers))
    frame = prelude + struct.pack("!I", crc32(prelude)) + headers + body
    return frame + struct.pack("!I", crc32(frame))


def _events(turn: WireTurn) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "messageStart", {"role": "assistant"}
    index = -1
    if turn.thinking:
        index += 1
        for delta in ({"text": turn.thinking}, {"signature": "signature-of-the-thinking"}):
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {"reasoningContent": delta}}
        yield "contentBlockStop", {"contentBlockIndex": index}
    text = [turn.refusal] if turn.refusal else turn.text
    if text:
        index += 1
        for piece in text:
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}}
        yield "contentBlockStop", {"contentBlockIndex": index}
    for call in turn.calls:
        index += 1
        start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
        yield "contentBlockStart", {"contentBlockIndex": index, "start": start}
        for piece in call.pieces:
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}
        yield "contentBlockStop", {"contentBlockIndex": index}
    if turn.end == "broken":
        return
    yield "messageStop", {"stopReason": _REASONS.get(turn.end, "tool_use" if turn.calls else "end_turn")}
    usage = {"inputTokens": 12, "outputTokens": 7, "totalTokens": 19}
    yield "metadata", {"usage": usage, "metrics": {"latencyMs": 5}}


def history(body: Mapping[str, Any]) -> list[Exchange]:
    found: list[Exchange] = []
    messages = [*body["messages"], {"role": "user", "content": []}]
    for message, after in itertools.pairwise(messages):
        uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        calls = [Exchange(use["toolUseId"], use["name"], use["input"]) for use in uses]
        assert all(isinstance(call.arguments, dict) for call in calls)
        if calls:
            results = [block["toolResult"] for block in after["content"] if "toolResult" in block]
            found += paired(calls, {result["toolUseId"]: json.dumps(result["content"]) for result in results})
    return found


BEDROCK = WireFormat(
    "bedrock",
    "langchain_aws",
    {
        "LLM_PROVIDER": "aws-bedrock",
        "AWS_REGION": "eu-west-1",
        "AWS_BEDROCK_MODEL_ID": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    },
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    "",
    "application/vnd.amazon.eventstream",
    encode,
    history,
)
