"""A model provider that fails, on a loopback port: the error bodies that providers send, and streams that go wrong."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Literal

Ending = Literal["close", "reset", "stall", "endless"]


@dataclass(frozen=True)
class Reply:
    """One answer: an error, or the pieces of a stream and how it ends. An endless stream repeats its last piece."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Sequence[str] = ()
    ending: Ending = "close"


@dataclass
class FailingProvider:
    address: str = ""
    replies: Sequence[Reply] = ()
    """One for each request; the last for all that follow."""
    requests: int = 0
    asked: Event = field(default_factory=Event)
    over: Event = field(default_factory=Event)
    """Set when a stream that stalls or does not end has lost its reader, or at the end of the test."""

    def answer(self, *replies: Reply) -> None:
        self.replies, self.requests = replies, 0
        self.asked.clear()
        self.over.clear()


def openai_piece(text: str, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    chunk = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


def openai_answer(text: str) -> Reply:
    return Reply(pieces=[openai_piece(text), openai_piece("", "stop"), "data: [DONE]\n\n"])


@contextmanager
def failing_provider() -> Iterator[FailingProvider]:
    state = FailingProvider()
    closing = Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            reply = state.replies[min(state.requests, len(state.replies) - 1)]
            state.requests += 1
            state.asked.set()
            if reply.body is not None:
                self._error(reply)
            else:
                self._stream(reply)

        def _error(self, reply: Reply) -> None:
            content = json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)

        def _stream(self, reply: Reply) -> None:
            self.close_connection = True
            with suppress(ConnectionError):
                if reply.pieces:
                    self.send_response(200)
                    self.send_header("Content-Type", reply.headers.get("Content-Type", "text/event-stream"))
                    self.send_header("Transfer-Encoding", "chunked")
                    self.send_header("Connection", "close")
                    self.end_headers()
                for piece in reply.pieces:
                    self._chunk(piece)
                match reply.ending:
                    case "close":
                        self._chunk("")
                    case "stall":
                        while not closing.wait(0.02) and not self._left():
                            pass
                    case "endless":
                        while not closing.is_set():
                            self._chunk(reply.pieces[-1] * 100)
                    case "reset":
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            state.over.set()

        def _chunk(self, text: str) -> None:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(text.encode()), text.encode()))

        def _left(self) -> bool:
            """Whether the reader has closed the connection."""
            self.connection.setblocking(False)
            try:
                return self.connection.recv(1, socket.MSG_PEEK) == b""
            except BlockingIOError:
                return False
            except ConnectionError:
                return True
            finally:
                self.connection.setblocking(True)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def shutdown_request(self, request: Any) -> None:
            self.close_request(request)  # without the polite end that the base class sends first

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that has left

    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
