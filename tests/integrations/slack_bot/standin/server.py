"""The stand-in on a socket: HTTP for the Web API, uploads and response URLs; faults as they were asked for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute

from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.faults import Broken, Fault, Faults, Lost, Refusal, Silence, TooMany
from tests.integrations.slack_bot.standin.loopback import Loopback, on_loopback
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.socket_mode import Sockets
from tests.integrations.slack_bot.standin.state import State
from tests.integrations.slack_bot.standin.web_api import files
from tests.integrations.slack_bot.standin.web_api.calling import TooManyCallsError, decoded, perform
from tests.integrations.slack_bot.standin.web_api.responses import respond

ABOUT_A_MESSAGE = ("chat.appendStream", "chat.stopStream", "chat.update", "chat.delete")


class Server:
    def __init__(self, state: State, faults: Faults, sockets: Sockets) -> None:
        self._state = state
        self._faults = faults
        self._loopback = Loopback("")
        self._about: Counter[tuple[str, str]] = Counter()
        self.latency = 0.001
        """Seconds of real time between doing what was asked and saying so. At once would hide calls that overlap."""
        self.under_way = 0
        """Requests that will be answered without anything else happening."""
        self._app = Starlette(
            routes=[
                Route("/api/{method}", self._api, methods=["GET", "POST"]),
                Route("/upload/{file_id}", self._upload, methods=["POST"]),
                Route("/response/{name}", self._response_url, methods=["POST"]),
                WebSocketRoute("/link/", sockets.connect),
            ]
        )

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Gives the address."""
        async with on_loopback(self._app) as self._loopback:
            yield self._loopback.url

    async def _api(self, request: Request) -> Response:
        self.under_way += 1
        try:
            arguments, token = await _read(request)
            call = ApiCall(request.path_params["method"], arguments, token, self._state.now)
            self._state.calls.append(call)
            fault = self._faults.of(call)
            with self._alone(call):
                answer = await self._answer(call) if fault is None or fault.done else None
                await asyncio.sleep(self.latency)
            if answer is not None and (fault is None or not call.ok):
                return answer
            assert fault is not None
            return await self._go_wrong(request, call, fault)
        finally:
            self.under_way -= 1

    async def _answer(self, call: ApiCall) -> Response:
        try:
            call.answer = perform(self._state, call)
        except RefusedError as refused:
            call.answer = refused.answer
        except TooManyCallsError as too_many:
            call.answer = {"ok": False, "error": "ratelimited"}
            return _too_many(too_many.seconds)
        headers = {"x-oauth-scopes": ",".join(sorted(self._state.directory.app.scopes))}
        return JSONResponse(dict(call.answer), headers=headers)

    async def _go_wrong(self, request: Request, call: ApiCall, fault: Fault) -> Response:
        """What comes of it instead of the answer."""
        call.answer = None
        match fault:
            case TooMany(seconds=seconds):
                self._state.rates.hold(call.method, seconds, self._state.now)
                call.answer = {"ok": False, "error": "ratelimited"}
                return _too_many(seconds)
            case Broken(status=status):
                return PlainTextResponse("<html>trouble</html>", status, media_type="text/html")
            case Refusal(error=error):
                call.answer = {"ok": False, "error": error}
                return JSONResponse(dict(call.answer))
            case Silence():
                await self._keep_silent(request)
            case Lost():
                await self._break(request)
        return Response(status_code=500)

    async def _keep_silent(self, request: Request) -> None:
        self.under_way -= 1
        try:
            await _disconnected(request)
        finally:
            self.under_way += 1

    async def _break(self, request: Request) -> None:
        assert request.client is not None
        self._loopback.break_connection((request.client.host, request.client.port))
        await _disconnected(request)

    @contextmanager
    def _alone(self, call: ApiCall) -> Iterator[None]:
        """Calls about one message come one after another, or the visible result is undefined."""
        about = (call.get("channel"), call.get("ts"))
        if call.method not in ABOUT_A_MESSAGE:
            yield
            return
        self._about[about] += 1
        if self._about[about] > 1:
            self._state.violate("overlap", call.method, f"message {about[1]} in {about[0]}")
        try:
            yield
        finally:
            self._about[about] -= 1

    async def _upload(self, request: Request) -> Response:
        self.under_way += 1
        try:
            if request.headers.get("content-type", "").startswith("multipart/"):
                async with request.form() as form:
                    parts = [part for part in form.values() if not isinstance(part, str)]
                    content = await parts[0].read() if parts else b""
            else:
                content = await request.body()
            call = ApiCall("upload", {"length": len(content)}, "", self._state.now)
            fault = self._faults.of(call)
            file_id = request.path_params["file_id"]
            arrived = (fault is None or fault.done) and files.receive(self._state, file_id, content)
            if fault is not None:
                return await self._go_wrong(request, call, fault)
            return PlainTextResponse(f"OK - {len(content)}" if arrived else "no", 200 if arrived else 400)
        finally:
            self.under_way -= 1

    async def _response_url(self, request: Request) -> Response:
        try:
            respond(self._state, request.path_params["name"], await request.json())
        except RefusedError as refused:
            if refused.fault:
                self._state.violate("refused", "response_url", str(refused))
            return PlainTextResponse(refused.error, 404)
        return PlainTextResponse("ok")


async def _read(request: Request) -> tuple[dict[str, Any], str]:
    """The arguments, wherever they are, and the token."""
    arguments: dict[str, Any] = dict(request.query_params)
    kind = request.headers.get("content-type", "")
    if request.method == "POST" and kind.startswith("application/json"):
        arguments |= await request.json()
    elif request.method == "POST" and kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        async with request.form() as form:
            arguments |= {name: value for name, value in form.items() if isinstance(value, str)}
    token = str(arguments.pop("token", ""))
    authorization = request.headers.get("authorization", "")
    return decoded(arguments), authorization.removeprefix("Bearer ") or token


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _too_many(seconds: int) -> Response:
    return JSONResponse({"ok": False, "error": "ratelimited"}, 429, headers={"Retry-After": str(seconds)})
