"""A language model behind the OpenAI API that plays a written part, and stops wherever a test wants to do something."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.integrations.slack_bot.standin.loopback import on_loopback
from tests.llm.openai_whole import whole_answer

Json = dict[str, Any]


@dataclass(eq=False)
class Pause:
    """The model is silent until the test goes on; `reached` as soon as it is."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        self.over.set()


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: Json


Turn = Sequence[str | Pause | Call]
OTHERWISE: Turn = ("That is all.",)


@dataclass
class PlayedModel:
    """`parts` has the turns that follow each question, the last of them for ever; agents are asked with what was
    delegated to them."""

    url: str = ""
    parts: dict[str, Sequence[Turn]] = field(default_factory=dict)
    requests: list[Json] = field(default_factory=list)

    def environ(self) -> dict[str, str]:
        return {
            "LLM_PROVIDER": "openai",
            "OPENAI_ENDPOINT": f"{self.url}/v1",
            "OPENAI_API_KEY": "sk-played",
            "OPENAI_MODEL_NAME": "played",
        }

    def asked(self, question: str) -> list[Json]:
        """The requests that ended with this question."""
        return [request for request in self.requests if _said(request)[-1:] == [question]]

    def heard(self, question: str) -> list[str]:
        """What people had said in the conversation when it was last asked this."""
        return _said(self.asked(question)[-1])

    async def answer(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        stream = self._stream(self._turn(body["messages"]))
        if body.get("stream"):
            return StreamingResponse(stream, media_type="text/event-stream")
        return JSONResponse(whole_answer("".join([piece async for piece in stream])))

    def _turn(self, messages: Sequence[Json]) -> Turn:
        for last in range(len(messages) - 1, -1, -1):
            turns = self.parts.get(_text(messages[last])) if messages[last]["role"] == "user" else None
            if turns:
                number = sum(one["role"] == "assistant" for one in messages[last:])
                return turns[min(number, len(turns) - 1)]
        return OTHERWISE

    async def _stream(self, turn: Turn) -> AsyncIterator[str]:
        calls = 0
        for piece in turn:
            match piece:
                case Pause():
                    piece.reached.set()
                    await piece.over.wait()
                case Call(tool, arguments):
                    function = {"name": tool, "arguments": json.dumps(arguments)}
                    call = {"index": calls, "id": f"call-{id(turn)}-{calls}", "type": "function", "function": function}
                    yield _chunk({"tool_calls": [call]})
                    calls += 1
                case text:
                    for word in text.splitlines(keepends=True):
                        yield _chunk({"content": word})
        yield _chunk({}, "tool_calls" if calls else "stop")
        yield "data: [DONE]\n\n"


@asynccontextmanager
async def played_model() -> AsyncIterator[PlayedModel]:
    model = PlayedModel()
    async with on_loopback(Starlette(routes=[Route("/v1/chat/completions", model.answer, methods=["POST"])])) as server:
        model.url = server.url
        yield model


def _chunk(delta: Json, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    chunk = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "played", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


def _text(message: Json) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _said(request: Json) -> list[str]:
    return [_text(one) for one in request["messages"] if one["role"] == "user"]
