"""A server on a loopback port that sends the turns of a script, one for each request, in a provider's wire format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.llm.loopback import served
from tests.llm.provider_shapes.turns import Exchange, WireFormat, WireTurn
from tests.untrusted_text import without_delimiters


@dataclass
class ShapeServer:
    wire: WireFormat
    address: str = ""
    script: list[WireTurn] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def play(self, *turns: WireTurn) -> None:
        self.script[:] = turns
        self.requests.clear()

    def histories(self) -> list[list[Exchange]]:
        """What the provider was shown of earlier calls, request by request; checked by the provider's rules."""
        histories = [self.wire.history(request) for request in self.requests]
        return [[_plain(exchange) for exchange in history] for history in histories]


def _plain(exchange: Exchange) -> Exchange:
    return exchange if exchange.result is None else replace(exchange, result=without_delimiters(exchange.result))


@contextmanager
def shape_server(wire: WireFormat) -> Iterator[ShapeServer]:
    state = ShapeServer(wire)

    class Handler(BaseHTTPRequestHandler):
        # A stream ends with its connection, so that a broken one looks like a whole one.
        protocol_version = "HTTP/1.0"

        def do_POST(self) -> None:
            state.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if not state.script:
                self.send_error(400, "the script is over")
                return
            answer, kind = wire.encode(state.script.pop(0)), wire.content_type
            if wire.whole is not None and not state.requests[-1].get("stream"):
                answer, kind = wire.whole(answer), "application/json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            pass

    with served(Handler) as address:
        state.address = f"{address}{wire.path}"
        yield state
