"""A client that costs little: it asks over A2A and reads the stream without understanding more than it must."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from benchmarks.samples import Answered

_numbers = itertools.count(1)


class UnansweredError(RuntimeError):
    """A request did not end as completed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An event as it arrived: `number` is its SSE id, `seconds` the time of its arrival (`time.perf_counter`)."""

    number: int
    result: dict[str, Any]
    seconds: float


class Connection:
    """One connection to a server; one request at a time."""

    def __init__(self, url: str, bearer: str | None = None) -> None:
        self._bearer = bearer
        address = urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 80

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=2**22)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def ask(self, question: str, context: str | None = None) -> Answered:
        """Ask and read to the end. The answer begins with the first words after the agent has finished."""
        began = time.perf_counter()
        first = answer = 0.0
        events = 0
        agent_done = completed = False
        await self.begin(question, context)
        # The line before the blank one that ends a chunked body is a zero.
        while (line := await self._reader.readline()) != b"0\r\n":
            if not line:
                raise UnansweredError("the connection was closed")
            if not line.startswith(b"data:"):
                continue
            events += 1
            first = first or time.perf_counter()
            agent_done = agent_done or b'"agent_finished"' in line
            if agent_done and not answer and b'"text_delta"' in line:
                answer = time.perf_counter()
            completed = completed or b'"completed"' in line
        await self._reader.readline()
        if not completed:
            raise UnansweredError("a request did not complete")
        ended = time.perf_counter()
        return Answered(first - began, answer - began, ended - began, events, ended)

    async def begin(self, question: str, context: str | None = None) -> None:
        """Ask, and leave the stream open."""
        message = _message(question) | ({"contextId": context} if context else {})
        await self._send("message/stream", {"message": message})

    async def watch(self, task_id: str, *, after: int | None = None) -> None:
        """Subscribe to a task, to all events or to those after a number, and leave the stream open."""
        await self._send("tasks/resubscribe", {"id": task_id}, after)

    async def next_event(self) -> dict[str, Any]:
        if (frame := await self.next_frame()) is None:
            raise UnansweredError("the stream has ended")
        return frame.result

    async def next_frame(self) -> Frame | None:
        """None at the end of the stream."""
        number = 0
        while (line := await self._reader.readline()) != b"0\r\n":
            if not line:
                raise UnansweredError("the connection was closed")
            name, _, value = line.partition(b":")
            if name == b"id":
                number = int(value)
            elif name == b"data":
                arrived = time.perf_counter()
                return Frame(number, json.loads(value)["result"], arrived)
        await self._reader.readline()
        return None

    async def _send(self, method: str, params: dict[str, Any], after: int | None = None) -> None:
        self._writer.write(_request(self._host, method, params, after, self._bearer))
        await self._writer.drain()


def open_stream(url: str, question: str) -> socket.socket:
    """Ask, and leave the stream open and unread until the socket is closed."""
    address = urlsplit(url)
    connection = socket.create_connection((address.hostname or "", address.port or 80))
    connection.sendall(_request(address.hostname or "", "message/stream", {"message": _message(question)}))
    return connection


def _message(question: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"kind": "text", "text": question}], "messageId": f"m{next(_numbers)}"}


def _request(
    host: str, method: str, params: dict[str, Any], after: int | None = None, bearer: str | None = None
) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}).encode()
    head = f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    if after is not None:
        head += f"\r\nLast-Event-ID: {after}"
    if bearer is not None:
        head += f"\r\nAuthorization: Bearer {bearer}"
    return head.encode() + b"\r\n\r\n" + body
