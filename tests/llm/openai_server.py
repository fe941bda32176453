"""A stand-in for a server that speaks the OpenAI API, chat and embeddings, on a loopback port."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.llm.loopback import served
from tests.llm.openai_whole import whole_answer


@dataclass
class OpenAIServer:
    """What it is to answer, and the requests that arrived."""

    address: str = ""
    deltas: Sequence[dict[str, Any]] = ({"content": "Hello"}, {"content": " there"})
    part: Callable[[dict[str, Any]], Sequence[dict[str, Any]]] | None = None
    """What it answers to a request, in place of `deltas`."""
    vectors: dict[str, list[float]] = field(default_factory=dict)
    """The embedding of each text; of one that is not here, its length and 1."""
    failures: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Answers given first, one per request: status and body."""
    rules: Callable[[dict[str, Any]], tuple[int, dict[str, Any]] | None] = lambda _: None
    """The answer to a request that is not valid."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def openai_server(context: ssl.SSLContext | None = None) -> Iterator[OpenAIServer]:
    state = OpenAIServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(body)
            state.paths.append(self.path)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            refused = state.failures.pop(0) if state.failures else state.rules(body)
            if refused is not None:
                status, answer = refused
                self._send(status, "application/json", json.dumps(answer).encode())
            elif self.path.partition("?")[0].endswith("/embeddings"):
                self._send(200, "application/json", json.dumps(_embeddings(state, body)).encode())
            else:
                stream = "".join(_events(state.part(body) if state.part else state.deltas))
                if body.get("stream"):
                    self._send(200, "text/event-stream", stream.encode())
                else:
                    self._send(200, "application/json", json.dumps(whole_answer(stream)).encode())

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            pass

    with served(Handler, context=context, callers_die=context is not None) as address:
        state.address = f"{address}/v1"
        yield state


def _embeddings(state: OpenAIServer, body: dict[str, Any]) -> dict[str, Any]:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = [
        {"object": "embedding", "index": index, "embedding": state.vectors.get(text, [float(len(text)), 1.0])}
        for index, text in enumerate(texts)
    ]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def _events(deltas: Sequence[dict[str, Any]]) -> Iterator[str]:
    reason = "tool_calls" if any("tool_calls" in delta for delta in deltas) else "stop"
    for delta, finish in [*((delta, None) for delta in deltas), ({}, reason)]:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
        chunk = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
