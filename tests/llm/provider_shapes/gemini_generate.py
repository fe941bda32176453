"""Gemini `streamGenerateContent`: partial `GenerateContentResponse` objects as server-sent events.

Arguments of calls are objects here, so a call that broke off or is not JSON has none: Gemini ends such a turn with
`MAX_TOKENS` or `MALFORMED_FUNCTION_CALL`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tests.llm.provider_shapes.turns import Exchange, WireCall, WireFormat, WireTurn, paired, sse

_REASONS = {
    "length": "MAX_TOKENS",
    "filter": "SAFETY",
    "refusal": "PROHIBITED_CONTENT",
    "malformed": "MALFORMED_FUNCTION_CALL",
}


def encode(turn: WireTurn) -> bytes:
    return "".join(_events(turn)).encode()


def _events(turn: WireTurn) -> Iterator[str]:
    if turn.thinking:
        yield from _response([{"text": turn.thinking, "thought": True}])
    for piece in turn.text:
        yield from _response([{"text": piece}])
    if turn.calls:
        yield from _response([_call(call) for call in turn.calls])
    if turn.end == "broken":
        return
    if turn.refusal:
        feedback = {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": []}
        yield from sse({"promptFeedback": feedback, "modelVersion": "gemini-2.5-flash", "responseId": "r"})
    else:
        yield from _response([{"text": ""}], _REASONS.get(turn.end, "STOP"))


def _call(call: WireCall) -> dict[str, Any]:
    arguments: Any = {}
    with suppress(ValueError):
        arguments = json.loads(call.arguments)
    function = {"name": call.name, "args": arguments}
    return {"functionCall": {**function, "id": call.id} if call.id else function}


def _response(parts: list[dict[str, Any]], reason: str | None = None) -> Iterator[str]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 7, "totalTokenCount": 19}
    body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash", "responseId": "r"}
    return sse(body)


def history(body: Mapping[str, Any]) -> list[Exchange]:
    """Gemini matches calls and results by place; ids are optional."""
    found: list[Exchange] = []
    contents = [*body["contents"], {"role": "user", "parts": []}]
    for content, after in itertools.pairwise(contents):
        made = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        given = [part["functionResponse"] for part in after["parts"] if "functionResponse" in part]
        assert [call["name"] for call in made] == [result["name"] for result in given]
        calls = [Exchange(str(place), call["name"], call.get("args", {})) for place, call in enumerate(made)]
        found += paired(calls, {str(place): json.dumps(result["response"]) for place, result in enumerate(given)})
    return found


GEMINI = WireFormat(
    "gemini",
    "langchain_google_genai",
    {"LLM_PROVIDER": "google-gemini", "GOOGLE_API_KEY": "not-a-key", "GOOGLE_GEMINI_MODEL_NAME": "gemini-2.5-flash"},
    "GOOGLE_GEMINI_BASE_URL",
    "",
    "text/event-stream",
    encode,
    history,
)
