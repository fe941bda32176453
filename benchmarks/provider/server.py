"""A scripted model behind the OpenAI API, as a process of its own: `python -m benchmarks.provider.server`.

It decides each turn from the request alone, so that it serves the product and the plain graph, and any number of
conversations at once. Texts and the arguments of calls are streamed in chunks, each written on its own.

Each line of JSON on its standard input is an order, answered with the number of model calls since the last reset:
`{"reset": true, "hold": true}` resets the number and leaves agents' calls unanswered from then on, `{"until": n}`
waits for n calls, `{"release": true}` answers the held calls.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import uvloop

from ai_platform_engineering.llm.scripted import Turn
from benchmarks.scenario import ANSWER_WORDS, agent_part, supervisor_part

_ARGUMENT_CHARACTERS: Final = 4
_USAGE: Final = {"prompt_tokens": 2000, "completion_tokens": 60, "total_tokens": 2060}
_BACKLOG: Final = 512
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n\r\n"
_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_ROLE: Final = re.compile(rb'"role": ?"(user|assistant)"')
_STREAMED: Final = re.compile(rb'"stream": ?true')
_TASK_TOOL: Final = re.compile(rb'"name": ?"task"')
_PLAN_TOOL: Final = re.compile(rb'"name": ?"write_todos"')


@dataclass(frozen=True, slots=True)
class Answer:
    """A turn as the bytes of an HTTP response: in chunks, the first with the head, or as one for a caller that does not
    stream."""

    chunks: Sequence[bytes]
    whole: bytes


class Model:
    """Answers calls at a pace, or holds those of agents, and counts all of them.

    It costs little: what it takes of the machine's cores is missing to the subjects that are measured. One timer writes
    the next chunk of all streams.
    """

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self._loop = asyncio.get_running_loop()
        self._hold = False
        self._calls = 0
        self._called = asyncio.Event()
        self._held: list[tuple[asyncio.Transport, bytes]] = []
        self._streams: list[tuple[asyncio.Transport, Iterator[bytes]]] = []

    def call(self, request: bytes, caller: asyncio.Transport) -> None:
        self._calls += 1
        self._called.set()
        if self._hold and _TASK_TOOL.search(request) is None:
            self._held.append((caller, request))
        else:
            self._answer(request, caller)

    async def obey(self, order: Mapping[str, Any]) -> int:
        if order.get("reset"):
            self._calls = 0
            self._hold = order.get("hold", False)
        if order.get("release"):
            self._hold = False
            held, self._held = self._held, []
            for caller, request in held:
                self._answer(request, caller)
        while self._calls < order.get("until", 0):
            self._called.clear()
            await self._called.wait()
        return self._calls

    def _answer(self, request: bytes, caller: asyncio.Transport) -> None:
        answer = answer_to(request)
        if _STREAMED.search(request) is None:
            self._loop.call_later(self._pace * len(answer.chunks), caller.write, answer.whole)
            return
        self._streams.append((caller, iter(answer.chunks)))
        if len(self._streams) == 1:
            self._loop.call_later(self._pace, self._write_chunks, self._loop.time() + self._pace)

    def _write_chunks(self, due: float) -> None:
        going_on = []
        for caller, chunks in self._streams:
            if (chunk := next(chunks, None)) is not None and not caller.is_closing():
                caller.write(chunk)
                going_on.append((caller, chunks))
        self._streams = going_on
        if going_on:
            due = max(due + self._pace, self._loop.time())
            self._loop.call_at(due, self._write_chunks, due)


class _Connection(asyncio.Protocol):
    """Collects the bytes of a request. A client sends the next one after the answer."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(_END_OF_HEAD)
        length = _LENGTH.search(head)
        if separator and len(body) >= (int(length[1]) if length else 0):
            self._received = b""
            self._model.call(body, self._transport)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pace", type=float, default=0.005, help="seconds between two chunks of a stream")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(parser.parse_args().pace))
    return 0


async def _serve(pace: float) -> None:
    loop = asyncio.get_running_loop()
    model = Model(pace)
    server = await loop.create_server(lambda: _Connection(model), "127.0.0.1", 0, backlog=_BACKLOG)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(await model.obey(json.loads(line)), flush=True)


def answer_to(request: bytes) -> Answer:
    """The turn that the script has for a request: by its tools, and by the turns since the last question."""
    number = 0
    for role in reversed(_ROLE.findall(request)):
        if role == b"user":
            break
        number += 1
    is_supervisor = _TASK_TOOL.search(request) is not None
    return _answers(supervisor=is_supervisor, bare=_PLAN_TOOL.search(request) is None)[number]


@functools.cache
def _answers(*, supervisor: bool, bare: bool) -> list[Answer]:
    part = supervisor_part(bare=bare) if supervisor else agent_part()
    return [_response(turn) for turn in part]


def _response(turn: Turn) -> Answer:
    first, *others = (b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in _chunks(turn))
    head = _HEAD % (b"text/event-stream", b"Transfer-Encoding: chunked")
    others[-1] += b"0\r\n\r\n"
    whole = _completion(turn)
    return Answer([head + first, *others], _HEAD % (b"application/json", b"Content-Length: %d" % len(whole)) + whole)


def _chunks(turn: Turn) -> Iterator[bytes]:
    yield _chunk({"role": "assistant", "content": ""})
    for word in _words(turn):
        yield _chunk({"content": f"{word} "})
    for index, (name, arguments) in enumerate(turn.calls):
        first = {"index": index, "id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": ""}}
        yield _chunk({"tool_calls": [first]})
        text = json.dumps(arguments)
        for start in range(0, len(text), _ARGUMENT_CHARACTERS):
            piece = {"index": index, "function": {"arguments": text[start : start + _ARGUMENT_CHARACTERS]}}
            yield _chunk({"tool_calls": [piece]})
    yield _chunk({}, finish=_finish(turn))
    yield _event({**_frame("chat.completion.chunk"), "choices": [], "usage": _USAGE})
    yield b"data: [DONE]\n\n"


def _completion(turn: Turn) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": " ".join(_words(turn)) or None}
    if turn.calls:
        message["tool_calls"] = [
            {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in turn.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(turn)}
    return json.dumps({**_frame("chat.completion"), "choices": [choice], "usage": _USAGE}).encode()


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _event({**_frame("chat.completion.chunk"), "choices": [choice], "usage": None})


def _frame(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted", "system_fingerprint": "fp_1"}


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _words(turn: Turn) -> list[str]:
    """A text is as long as the answer, whatever the script says."""
    words = turn.text.split()
    return [*itertools.islice(itertools.cycle(words), ANSWER_WORDS)]


def _finish(turn: Turn) -> str:
    return "tool_calls" if turn.calls else "stop"


if __name__ == "__main__":
    sys.exit(main())
