"""A model behind the OpenAI API, in the event loop of the test: killed processes do not take it with them.

It streams its texts word by word, gives every tool call a new id, refuses histories as OpenAI does, and records every
request with the process that made it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from ai_platform_engineering.llm.scripted import Turn
from tests.graphs.provider_rules import InvalidHistoryError, check_openai_chat
from tests.llm.openai_whole import whole_answer

Json = Mapping[str, Any]

_HEAD = b"HTTP/1.1 %d OK\r\nContent-Type: %b\r\n%b\r\n\r\n"


@dataclass(frozen=True)
class ModelCall:
    """One request, and the name of the process that made it."""

    caller: str
    messages: Sequence[Json]

    @property
    def question(self) -> str:
        return str(next(message["content"] for message in reversed(self.messages) if message["role"] == "user"))


@dataclass
class ModelServer:
    """`play` gives the turn for a request. `pace` is the time between two pieces of a stream, in seconds.

    A stream waits before a piece with one of the texts in `holds`, until its event is set.
    """

    play: Callable[[Json], Turn]
    pace: float = 0.004
    address: str = ""
    calls: list[ModelCall] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    holds: dict[str, asyncio.Event] = field(default_factory=dict)
    _called: asyncio.Condition = field(default_factory=asyncio.Condition)

    def environ(self, caller: str = "supervisor") -> dict[str, str]:
        """The settings of a process whose calls are recorded with this name."""
        model = {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k", "OPENAI_MODEL_NAME": "m", "LLM_TIMEOUT": "60"}
        return {**model, "OPENAI_ENDPOINT": f"{self.address}/{caller}/v1"}

    def history(self, question: str) -> list[Json]:
        """The messages, without the prompt, of the last call that answers this question."""
        found = [call.messages for call in self.calls if call.question == question]
        return [message for message in found[-1] if message["role"] != "system"]

    async def caller_about(self, name: str) -> str:
        """The process that made the last call about `name`. Waits for the first call."""
        async with self._called:
            await self._called.wait_for(lambda: any(name in call.question for call in self.calls))
        return [call.caller for call in self.calls if name in call.question][-1]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _request(reader)) is not None:
                await self._answer(*request, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the caller was killed
        finally:
            writer.close()

    async def _answer(self, caller: str, request: Json, writer: asyncio.StreamWriter) -> None:
        async with self._called:
            self.calls.append(ModelCall(caller, request["messages"]))
            self._called.notify_all()
        try:
            check_openai_chat(request["messages"])
        except InvalidHistoryError as error:
            self.refusals.append(str(error))
            refusal = {"error": {"message": str(error), "type": "invalid_request_error", "code": None}}
            await _send(writer, 400, refusal)
            return
        chunks = [*_chunks(self.play(request))]
        if request.get("stream"):
            await self._stream(writer, chunks)
        else:
            await asyncio.sleep(self.pace)
            await _send(writer, 200, whole_answer("".join(chunks)))

    async def _stream(self, writer: asyncio.StreamWriter, chunks: list[str]) -> None:
        writer.write(_HEAD % (200, b"text/event-stream", b"Transfer-Encoding: chunked"))
        for chunk in chunks:
            for held in [released for text, released in self.holds.items() if text in chunk]:
                await held.wait()
            await asyncio.sleep(self.pace)
            content = chunk.encode()
            writer.write(b"%x\r\n%b\r\n" % (len(content), content))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def model_server(play: Callable[[Json], Turn]) -> AsyncIterator[ModelServer]:
    model = ModelServer(play)
    conversations: set[asyncio.Task[None]] = set()

    def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.create_task(model.converse(reader, writer))
        conversations.add(conversation)
        conversation.add_done_callback(conversations.discard)

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    model.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield model
    finally:
        server.close()
        for conversation in conversations:
            conversation.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> tuple[str, Json] | None:
    """The first part of the path, and the body. None if the caller has closed the connection."""
    if not (line := await reader.readline()):
        return None
    length = 0
    caller = line.split(b"/")[1].decode()
    while (line := await reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return caller, json.loads(await reader.readexactly(length))


async def _send(writer: asyncio.StreamWriter, status: int, body: Json) -> None:
    content = json.dumps(body).encode()
    writer.write(_HEAD % (status, b"application/json", b"Content-Length: %d" % len(content)) + content)
    await writer.drain()


def _chunks(turn: Turn) -> Iterator[str]:
    for word in re.findall(r"\S+\s*", turn.text):
        yield _chunk({"content": word})
    for index, (name, arguments) in enumerate(turn.calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": index, "id": f"call_{uuid4().hex[:16]}", "type": "function", "function": function}
        yield _chunk({"tool_calls": [call]})
    yield _chunk({}, "tool_calls" if turn.calls else "stop")
    yield "data: [DONE]\n\n"


def _chunk(delta: Json, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    chunk = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"
