"""An OpenAI server that plays the supervisor and its agents, and refuses histories as OpenAI does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any

from tests.graphs.provider_rules import InvalidHistoryError, Json, check_openai_chat
from tests.llm.loopback import served
from tests.llm.openai_whole import whole_answer

Calls = Sequence[tuple[str, Mapping[str, Any]]]
"""Tool calls as name and arguments."""

Part = Callable[[Json], str | Calls]
"""What is said to a request: an answer, or calls. Their ids are numbered anew in every turn, as some models do."""


@dataclass
class OpenAIServer:
    """`held` stops a part that waits for it. `histories` are the messages of each request by the supervisor."""

    part: Part
    address: str = ""
    held: Event = field(default_factory=Event)
    broken: bool = False
    """Whether Argo CD's model breaks off instead of answering."""
    histories: list[list[Json]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        model = {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k", "OPENAI_MODEL_NAME": "m", "LLM_TIMEOUT": "60"}
        return {**model, "OPENAI_ENDPOINT": self.address}


def turn_of(body: Json) -> int:
    """How many turns the model has had since the last question."""
    roles = [message["role"] for message in body["messages"]]
    return roles[::-1][: roles[::-1].index("user")].count("assistant")


def tools_of(body: Json) -> set[str]:
    return {tool["function"]["name"] for tool in body.get("tools", ())}


@contextmanager
def openai_server(part: Part) -> Iterator[OpenAIServer]:
    server = OpenAIServer(part)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "task" in tools_of(body):
                server.histories.append(body["messages"])
            try:
                check_openai_chat(body["messages"])
            except InvalidHistoryError as error:
                server.refusals.append(str(error))
                refusal = {"error": {"message": str(error), "type": "invalid_request_error", "code": None}}
                self._send(400, "application/json", json.dumps(refusal))
                return
            said = server.part(body)
            stream = "".join(_events(said))
            if body.get("stream"):
                self._send(200, "text/event-stream", stream)
            else:
                self._send(200, "application/json", json.dumps(whole_answer(stream)))

        def _send(self, status: int, kind: str, text: str) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            pass

    with served(Handler, callers_die=True) as address:
        server.address = f"{address}/v1"
        try:
            yield server
        finally:
            server.held.set()


def _events(said: str | Calls) -> Iterator[str]:
    if isinstance(said, str):
        delta, reason = {"content": said}, "stop"
    else:
        calls = [
            {"index": i, "id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, (n, a) in enumerate(said)
        ]
        delta, reason = {"tool_calls": calls}, "tool_calls"  # type: ignore[dict-item]
    for part, finish in ((delta, None), ({}, reason)):
        choice = {"index": 0, "delta": {"role": "assistant", **part}, "finish_reason": finish}
        chunk = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
