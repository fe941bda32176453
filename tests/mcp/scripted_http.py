"""A streamable-HTTP MCP server that misbehaves on demand, in this event loop on a loopback port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.datastructures import Address
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.utils.a2a_common.serving import listening


@dataclass
class ScriptedHttp:
    """What it has seen, and how it answers; each tool is a way to answer."""

    port: int = 0
    session: str = "session-1"
    stateless: bool = False
    required_token: str | None = None
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    peers: list[Address | None] = field(default_factory=list)
    """The client's end of the connection of every message."""
    redirect_to: str | None = None
    resumed_after: str | None = None
    pending: dict[str, Any] | None = None
    unasked: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def moved(self, request: Request) -> Response:
        return RedirectResponse(self.redirect_to or self.url, 307)

    async def post(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        self.peers.append(request.client)
        if self.required_token and request.headers.get("authorization") != f"Bearer {self.required_token}":
            return Response(status_code=401)
        message = await request.json()
        method, params = message["method"], message.get("params") or {}
        self.seen.append((method, params))
        if not self.stateless and method != "initialize" and request.headers.get("mcp-session-id") != self.session:
            return JSONResponse({"error": "session not found"}, 404)
        if "id" not in message:
            return Response(status_code=202)
        if method == "initialize":
            result: dict[str, Any] = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "scripted", "version": "1"},
            }
            headers = {} if self.stateless else {"mcp-session-id": self.session}
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)
        if method == "tools/list":
            names = ["echo", "busy", "cut", "silent", "resumable", "html", "hang", "bad"]
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}})
        return await self.call(message["id"], params["name"], params.get("arguments") or {})

    async def call(self, request_id: int, name: str, arguments: dict[str, Any]) -> Response:
        match name:
            case "busy":
                return Response(status_code=503)
            case "bad":
                return JSONResponse({"error": "arguments too long"}, 400)
            case "html":
                return Response("<h1>hello</h1>", media_type="text/html")
            case "cut" | "silent" | "resumable":
                self.pending = self.result(request_id, "resumed")
                return StreamingResponse(self.unfinished(name), media_type="text/event-stream")
            case "hang":
                await asyncio.sleep(60)
        return JSONResponse(self.result(request_id, json.dumps(arguments)))

    def result(self, request_id: int, text: str) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": request_id, "result": {"content": [{"type": "text", "text": text}]}}

    async def unfinished(self, name: str) -> AsyncIterator[str]:
        yield ": hello\n\n"
        if name == "cut":
            raise ConnectionResetError
        if name == "resumable":
            yield "id: e1\nretry: 10\ndata:\n\n"

    async def get(self, request: Request) -> Response:
        if request.headers.get("mcp-session-id") != self.session:
            return JSONResponse({"error": "session not found"}, 404)
        if last := request.headers.get("last-event-id"):
            self.resumed_after = last
            return Response(f"event: message\ndata: {json.dumps(self.pending)}\n\n", media_type="text/event-stream")
        return StreamingResponse(self.announcements(), media_type="text/event-stream")

    async def announcements(self) -> AsyncIterator[str]:
        while True:
            yield f"data: {json.dumps({'jsonrpc': '2.0', **await self.unasked.get()})}\n\n"

    async def delete(self, request: Request) -> Response:
        self.seen.append(("DELETE", {}))
        return Response(status_code=200)


@asynccontextmanager
async def scripted_http() -> AsyncIterator[ScriptedHttp]:
    server = ScriptedHttp()
    app = Starlette(
        routes=[
            Route("/mcp", server.post, methods=["POST"]),
            Route("/mcp", server.get, methods=["GET"]),
            Route("/mcp", server.delete, methods=["DELETE"]),
            Route("/moved", server.moved, methods=["POST"]),
        ]
    )
    async with listening(app) as url:
        server.port = httpx.URL(url).port or 0
        yield server
