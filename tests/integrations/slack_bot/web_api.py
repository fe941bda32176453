"""A server that speaks as much of Slack's Web API as delivery needs, and answers as a test wants it to."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import web

from tests.integrations.slack_bot.virtual_clock import VirtualClock


@dataclass(frozen=True)
class Answer:
    """What the server does with a call: whether it does the work, and what it answers."""

    data: dict[str, Any] | None = None
    """None: what the call is to be answered with."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = True
    lost: bool = False
    """The connection is closed instead of an answer."""
    hangs: bool = False
    body: str | None = None
    """Something that is not JSON."""


def refusal(error: str, *hints: str, **more: Any) -> Answer:
    return Answer({"ok": False, "error": error, "response_metadata": {"messages": list(hints)}, **more}, done=False)


class Slack:
    """A workspace with a thread, and answers to come for some methods."""

    def __init__(self, clock: VirtualClock, thread_ts: str) -> None:
        self.clock = clock
        self.thread_ts = thread_ts
        self.url = ""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.messages: list[dict[str, Any]] = [{"ts": self.thread_ts, "user": "U1", "text": "How many?"}]
        self.uploaded: dict[str, bytes] = {}
        self.tokens: set[str] = set()
        self.heard = asyncio.Event()
        self._coming: defaultdict[str, deque[Answer]] = defaultdict(deque)
        self._always: dict[str, Callable[[dict[str, Any]], Answer | None]] = {}
        self._numbers = count(1)

    def next(self, method: str, *answers: Answer) -> None:
        self._coming[method].extend(answers)

    def always(self, method: str, answer: Callable[[dict[str, Any]], Answer | None]) -> None:
        self._always[method] = answer

    def asked(self, method: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.calls if name == method]

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.calls]

    @property
    def own(self) -> list[dict[str, Any]]:
        return [message for message in self.messages if message.get("bot_id") == "B1"]

    def post(self, arguments: dict[str, Any]) -> str:
        """The bot says something in the thread."""
        ts = f"{self.clock.now() + next(self._numbers) / 1000:.6f}"
        self.messages.append({**arguments, "ts": ts, "user": "UBOT", "bot_id": "B1"})
        return ts

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_post("/upload/{file}", self._upload)
        return app

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        arguments: dict[str, Any] = dict(request.query)
        if request.content_type == "application/json" and (body := await request.text()):
            arguments |= json.loads(body)
        self.tokens.add(request.headers["Authorization"])
        self.calls.append((method, arguments))
        self.heard.set()
        coming = self._coming[method]
        answer = coming.popleft() if coming else self._always.get(method, lambda _: None)(arguments) or Answer()
        data = self._do(method, arguments) if answer.done else {}
        return await self._answered(request, answer, data)

    async def _answered(self, request: web.Request, answer: Answer, data: dict[str, Any]) -> web.StreamResponse:
        if answer.hangs:
            await asyncio.sleep(5)
        if answer.lost:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if answer.body is not None:
            return web.Response(text=answer.body, status=answer.status, content_type="text/html")
        data = {"ok": True, **data} if answer.data is None else answer.data
        return web.json_response(data, status=answer.status, headers=answer.headers)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        coming = self._coming["upload"]
        answer = coming.popleft() if coming else Answer()
        self.calls.append(("upload", {}))
        if answer.done:
            self.uploaded[request.match_info["file"]] = await request.read()
        return await self._answered(request, answer, {})

    def _do(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "chat.postMessage" | "chat.startStream":
                return {"ts": self.post(arguments)}
            case "files.getUploadURLExternal":
                file = f"F{next(self._numbers)}"
                return {"file_id": file, "upload_url": f"{self.url}/upload/{file}"}
            case "files.completeUploadExternal":
                self.post({"files": json.loads(arguments["files"]), "thread_ts": arguments["thread_ts"]})
                return {}
            case "conversations.replies":
                assert arguments["ts"] == self.thread_ts
                replies = [message for message in self.messages[1:] if message["ts"] > arguments["oldest"]]
                return {"messages": [self.messages[0], *map(self._seen, replies)]}
            case "auth.test":
                return {"user_id": "UBOT", "bot_id": "B1"}
            case _:
                return {}

    def _seen(self, message: dict[str, Any]) -> dict[str, Any]:
        """As Slack tells it: what was streamed, as rich text; Markdown without its syntax."""
        spoken = [chunk.get("text") or chunk.get("title") for chunk in message.get("chunks") or ()]
        parts = [{"type": "text", "text": part.replace("*", "")} for part in spoken]
        return {**message, "blocks": [{"type": "rich_text", "elements": [{"elements": parts}]}]} if parts else message
