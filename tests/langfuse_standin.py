"""A stand-in for Langfuse over HTTP: the one call that is used, as strict as the real one or stricter."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.utils.a2a_common.serving import listening

PUBLIC, SECRET = "pk-lf-123", "sk-lf-456"
_FIELDS = {"id": str, "traceId": str, "name": str, "value": int, "dataType": str, "comment": str}


@dataclass
class LangfuseStandIn:
    url: str = ""
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By id: one that comes again replaces the first."""
    codes: list[int] = field(default_factory=list)
    """What the next calls are answered with, before all is well."""
    calls: int = 0
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    """Calls are answered while it is set."""

    def environ(self) -> dict[str, str]:
        return {"LANGFUSE_HOST": self.url, "LANGFUSE_PUBLIC_KEY": PUBLIC, "LANGFUSE_SECRET_KEY": SECRET}

    async def create_score(self, request: Request) -> Response:
        self.calls += 1
        await self.answers.wait()
        if self.codes:
            return Response(status_code=self.codes.pop(0))
        sent = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {sent}":
            return JSONResponse({"message": "Invalid credentials"}, status_code=401)
        body = await request.json()
        wrong = [name for name, value in body.items() if type(value) is not _FIELDS.get(name)]
        missing = {"id", "traceId", "name", "value", "dataType"} - body.keys()
        if wrong or missing or body["dataType"] != "BOOLEAN" or body["value"] not in {0, 1} or not body["traceId"]:
            return JSONResponse({"message": "Invalid request data"}, status_code=400)
        self.scores[body["id"]] = body
        return JSONResponse({"id": body["id"]})


@asynccontextmanager
async def langfuse() -> AsyncIterator[LangfuseStandIn]:
    standin = LangfuseStandIn()
    standin.answers.set()
    routes = [Route("/api/public/scores", standin.create_score, methods=["POST"])]
    async with listening(Starlette(routes=routes)) as url:
        standin.url = url
        yield standin
