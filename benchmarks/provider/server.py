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
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import uvloop

from ai_platform_engineering.llm.scripted import Turn
from benchmarks.scenario import ANSWER_WORDS, agent_part, supervisor_part

_ARGUMENT_CHARACTERS: Final = 4
_USAGE: Final = {"prompt_tokens": 2000, "completion_tokens": 60, "total_tokens": 2060}
_BACKLOG: Final = 512
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """A turn in chunks, and as one body for a caller that does not stream."""

    chunks: Sequence[bytes]
    whole: bytes


class Model:
    """Answers calls at a pace, or holds those of agents, and counts all of them."""

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self._hold = False
        self._calls = 0
        self._called = asyncio.Condition()
        self._released = asyncio.Event()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while body := await _body(reader):
                await self._answer(json.loads(body), writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def obey(self, order: Mapping[str, Any]) -> int:
        if order.get("reset"):
            self._calls = 0
            self._hold = order.get("hold", False)
        if order.get("release"):
            self._hold = False
            self._released.set()
            self._released = asyncio.Event()
        async with self._called:
            await self._called.wait_for(lambda: self._calls >= order.get("until", 0))
        return self._calls

    async def _answer(self, request: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        async with self._called:
            self._calls += 1
            self._called.notify_all()
        if self._hold and not _is_supervisor(request):
            await self._released.wait()
        answer = answer_to(request)
        if request.get("stream"):
            await _stream(writer, answer.chunks, self._pace)
        else:
            await asyncio.sleep(self._pace * len(answer.chunks))
            length = b"Content-Length: %d" % len(answer.whole)
            writer.write(_HEAD % (b"application/json", length) + answer.whole)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pace", type=float, default=0.005, help="seconds between two chunks of a stream")
    # On a slower event loop the server could limit how many requests per second are measured.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(Model(parser.parse_args().pace)))
    return 0


async def _serve(model: Model) -> None:
    server = await asyncio.start_server(model.converse, "127.0.0.1", 0, backlog=_BACKLOG)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(await model.obey(json.loads(line)), flush=True)


async def _body(reader: asyncio.StreamReader) -> bytes:
    length = 0
    while (line := await reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return await reader.readexactly(length)


async def _stream(writer: asyncio.StreamWriter, pieces: Sequence[bytes], pace: float) -> None:
    writer.write(_HEAD % (b"text/event-stream", b"Transfer-Encoding: chunked"))
    for piece in pieces:
        await asyncio.sleep(pace)
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    writer.write(b"0\r\n\r\n")


def answer_to(request: Mapping[str, Any]) -> Answer:
    """The turn that the script has for a request: by its tools, and by the turns since the last question."""
    roles = [message["role"] for message in request["messages"]]
    number = roles[::-1][: roles[::-1].index("user")].count("assistant")
    return _answers(supervisor=_is_supervisor(request), bare="write_todos" not in _tools(request))[number]


@functools.cache
def _answers(*, supervisor: bool, bare: bool) -> list[Answer]:
    part = supervisor_part(bare=bare) if supervisor else agent_part()
    return [Answer([*_chunks(turn)], _completion(turn)) for turn in part]


def _is_supervisor(request: Mapping[str, Any]) -> bool:
    return "task" in _tools(request)


def _tools(request: Mapping[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request.get("tools") or ()}


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
