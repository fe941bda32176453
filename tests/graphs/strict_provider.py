"""A server on a loopback port that answers as OpenAI, Anthropic and Bedrock do: 400 for a history they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.graphs.provider_rules import (
    InvalidHistoryError,
    Json,
    check_anthropic,
    check_bedrock,
    check_openai_chat,
    check_openai_responses,
)
from tests.llm.loopback import served

_USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def _openai_chat(body: Json) -> Any:
    check_openai_chat(body["messages"])
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def _openai_responses(body: Json) -> Any:
    check_openai_responses(body["input"])
    text = {"type": "output_text", "text": "ok", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    answer = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [message]}
    options = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "status": "completed"}
    return {**answer, **options, "usage": {**_USAGE, **details}}


def _anthropic(body: Json) -> Any:
    check_anthropic(body["messages"])
    content = [{"type": "text", "text": "ok"}]
    answer = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content}
    return {**answer, "stop_reason": "end_turn", "usage": _USAGE}


def _bedrock(body: Json) -> Any:
    check_bedrock(body["messages"])
    message = {"role": "assistant", "content": [{"text": "ok"}]}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}


_ROUTES: dict[str, Callable[[Json], Any]] = {
    "/v1/chat/completions": _openai_chat,
    "/v1/responses": _openai_responses,
    "/v1/messages": _anthropic,
    "/converse": _bedrock,
}


@contextmanager
def strict_provider() -> Iterator[str]:
    """The address of the server. It closes each connection after its answer, so that no client keeps one open."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            route = next(answer for end, answer in _ROUTES.items() if self.path.partition("?")[0].endswith(end))
            try:
                status, answer = 200, route(body)
            except InvalidHistoryError as error:
                status, answer = 400, {"error": {"message": str(error), "type": "invalid_request_error"}}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            pass

    with served(Handler) as address:
        yield address
