"""OpenAI Responses, streamed: named server-sent events, each with a sequence number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from tests.llm.provider_shapes.turns import Exchange, WireFormat, WireTurn, paired, sse

_numbers = count(1)


def encode(turn: WireTurn) -> bytes:
    sequence = count()
    return "".join(
        line for event in _events(turn) for line in sse({**event, "sequence_number": next(sequence)}, named=True)
    ).encode()


def _events(turn: WireTurn) -> Iterator[dict[str, Any]]:
    number = next(_numbers)
    response = _response(f"resp_{number:04}")
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    output: list[dict[str, Any]] = []
    if turn.thinking:
        yield from _reasoning(turn.thinking, f"rs_{number:04}", len(output), output)
    if turn.text or turn.refusal:
        yield from _message(turn, f"msg_{number:04}", len(output), output)
    for place, call in enumerate(turn.calls):
        item = {"id": f"fc_{number:04}_{place}", "type": "function_call", "call_id": call.id, "name": call.name}
        index = len(output)
        empty = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        for piece in call.pieces:
            where = {"item_id": item["id"], "output_index": index}
            yield {"type": "response.function_call_arguments.delta", "delta": piece, **where}
        if turn.end == "broken":
            return
        status = "incomplete" if turn.end == "length" else "completed"
        output.append({**item, "arguments": call.arguments, "status": status})
        if status == "completed":
            done = {"arguments": call.arguments, "name": call.name, "item_id": item["id"], "output_index": index}
            yield {"type": "response.function_call_arguments.done", **done}
        yield {"type": "response.output_item.done", "output_index": index, "item": output[-1]}
    if turn.end == "broken":
        return
    reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(turn.end)
    status = "incomplete" if reason else "completed"
    usage = {"input_tokens": 12, "output_tokens": 7, "total_tokens": 19}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    ended = {"status": status, "output": output, "usage": usage}
    ended["incomplete_details"] = {"reason": reason} if reason else None
    yield {"type": f"response.{status}", "response": {**response, **ended}}


def _response(response_id: str) -> dict[str, Any]:
    return {
        "id": response_id,
        "object": "response",
        "created_at": 1,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-5-codex",
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }


def _reasoning(text: str, item_id: str, index: int, output: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    item = {"id": item_id, "type": "reasoning", "summary": []}
    where = {"item_id": item_id, "output_index": index, "summary_index": 0}
    part = {"type": "summary_text", "text": text}
    yield {"type": "response.output_item.added", "output_index": index, "item": item}
    yield {"type": "response.reasoning_summary_part.added", "part": {**part, "text": ""}, **where}
    yield {"type": "response.reasoning_summary_text.delta", "delta": text, **where}
    yield {"type": "response.reasoning_summary_text.done", "text": text, **where}
    yield {"type": "response.reasoning_summary_part.done", "part": part, **where}
    output.append({**item, "summary": [part]})
    yield {"type": "response.output_item.done", "output_index": index, "item": output[-1]}


def _message(turn: WireTurn, item_id: str, index: int, output: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    item = {"id": item_id, "type": "message", "role": "assistant"}
    where = {"item_id": item_id, "output_index": index, "content_index": 0}
    text = "".join(turn.text)
    empty = {"type": "output_text", "text": "", "annotations": []}
    part = {**empty, "text": text}
    yield {
        "type": "response.output_item.added",
        "output_index": index,
        "item": {**item, "content": [], "status": "in_progress"},
    }
    if turn.refusal:
        part = {"type": "refusal", "refusal": turn.refusal}
        yield {"type": "response.content_part.added", "part": {**part, "refusal": ""}, **where}
        for word in turn.refusal.split(" "):
            yield {"type": "response.refusal.delta", "delta": f"{word} ", **where}
        yield {"type": "response.refusal.done", "refusal": turn.refusal, **where}
    else:
        yield {"type": "response.content_part.added", "part": empty, **where}
        for piece in turn.text:
            yield {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **where}
        if turn.end == "broken":
            return
        yield {"type": "response.output_text.done", "text": text, "logprobs": [], **where}
    yield {"type": "response.content_part.done", "part": part, **where}
    status = "incomplete" if turn.end in ("length", "filter") else "completed"
    output.append({**item, "content": [part], "status": status})
    yield {"type": "response.output_item.done", "output_index": index, "item": output[-1]}


def history(body: Mapping[str, Any]) -> list[Exchange]:
    calls = [
        Exchange(item["call_id"], item["name"], json.loads(item["arguments"]))
        for item in body["input"]
        if item.get("type") == "function_call"
    ]
    outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
    assert len({item["call_id"] for item in outputs}) == len(outputs), "a call has two results"
    return paired(calls, {item["call_id"]: item["output"] for item in outputs})


OPENAI_RESPONSES = WireFormat(
    "openai-responses",
    "langchain_openai",
    # LangChain uses the Responses API for this family of models.
    {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "not-a-key", "OPENAI_MODEL_NAME": "gpt-5-codex"},
    "OPENAI_ENDPOINT",
    "/v1",
    "text/event-stream",
    encode,
    history,
)
