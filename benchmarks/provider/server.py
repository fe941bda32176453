"""A scripted model behind the OpenAI API, as a process of its own: `python -m benchmarks.provider.server`.

It decides each turn from the request alone, so that it serves the product and the bare graph, and any number of
conversations at once. Texts and the arguments of calls are streamed in chunks, each written on its own.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import itertools
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ai_platform_engineering.utils.llm.scripted import Turn
from benchmarks.scenario import ANSWER_WORDS, agent_part, supervisor_part

_ARGUMENT_CHARACTERS: Final = 4
_USAGE: Final = {"prompt_tokens": 2000, "completion_tokens": 60, "total_tokens": 2060}
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n\r\n"

_calls: list[Turn] = []


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pace", type=float, default=0.005, help="seconds between two chunks of a stream")
    asyncio.run(_serve(parser.parse_args().pace))
    return 0


async def _serve(pace: float) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _report_calls)
    server = await asyncio.start_server(functools.partial(_converse, pace=pace), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def _report_calls() -> None:
    """The number of model calls since the last report."""
    print(len(_calls), flush=True)
    _calls.clear()


async def _converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pace: float) -> None:
    try:
        while body := await _body(reader):
            request = json.loads(body)
            turn = turn_of(request)
            _calls.append(turn)
            if request.get("stream"):
                await _stream(writer, chunks(turn), pace)
            else:
                await asyncio.sleep(pace * len(chunks(turn)))
                content = json.dumps(completion(turn)).encode()
                writer.write(_HEAD % (b"application/json", b"Content-Length: %d" % len(content)) + content)
    except ConnectionError:
        pass
    finally:
        writer.close()


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


def turn_of(request: Mapping[str, Any]) -> Turn:
    """The turn that the script has for a request: by its tools, and by the turns since the last question."""
    tools = {tool["function"]["name"] for tool in request.get("tools") or ()}
    roles = [message["role"] for message in request["messages"]]
    number = roles[::-1][: roles[::-1].index("user")].count("assistant")
    part = supervisor_part(bare="write_todos" not in tools) if "task" in tools else agent_part()
    return part[number]


def chunks(turn: Turn) -> list[bytes]:
    return [*_encoded(turn)]


def _encoded(turn: Turn) -> Iterator[bytes]:
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


def completion(turn: Turn) -> dict[str, Any]:
    """The turn as one answer, for a caller that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": " ".join(_words(turn)) or None}
    if turn.calls:
        message["tool_calls"] = [
            {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in turn.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(turn)}
    return {**_frame("chat.completion"), "choices": [choice], "usage": _USAGE}


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
