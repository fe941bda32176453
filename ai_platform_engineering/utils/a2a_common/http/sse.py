"""Server-sent events: one frame per item, its number as the id, so that a client can say where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ai_platform_engineering.utils.a2a_common.http.event_json import ProtocolVersion, dumps, stream_json
from ai_platform_engineering.utils.a2a_common.log.event_log import Entry, Snapshot

PING_SECONDS: Final = 15.0
"""Proxies close a connection on which nothing is said; a comment is enough to keep it."""

_PING: Final = b": ping\r\n\r\n"


def frame(data: bytes, seq: int | None = None, event: str | None = None) -> bytes:
    head = "" if seq is None else f"id: {seq}\r\n"
    if event is not None:
        head += f"event: {event}\r\n"
    return b"%sdata: %s\r\n\r\n" % (head.encode(), data)


def item_json(item: Snapshot | Entry, version: ProtocolVersion) -> bytes:
    return dumps(stream_json(item.task if isinstance(item, Snapshot) else item.event, version))


class EventStream(Response):
    """Sends frames as they come, until they end or the caller is gone.

    A thousand streams may be waiting at once, so each is two small tasks and no more.
    """

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes], ping_seconds: float = PING_SECONDS) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._frames = frames
        self._ping_seconds = ping_seconds
        self._spoke = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        writer = asyncio.create_task(self._write(send))
        tasks = {writer, asyncio.create_task(_gone(receive))}
        try:
            while not (await asyncio.wait(tasks, timeout=self._ping_seconds, return_when=asyncio.FIRST_COMPLETED))[0]:
                if not self._spoke:
                    await send({"type": "http.response.body", "body": _PING, "more_body": True})
                self._spoke = False
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not writer.cancelled():
            writer.result()

    async def _write(self, send: Send) -> None:
        async with aclosing(self._frames) as frames:
            async for chunk in frames:
                self._spoke = True
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def event_stream(
    first: Snapshot | Entry,
    rest: AsyncIterator[Snapshot | Entry],
    data: Callable[[Snapshot | Entry], bytes],
    failure: Callable[[Exception], bytes],
) -> EventStream:
    """The stream as a response. `data` writes an item, `failure` says in a last frame what broke it off."""

    async def frames() -> AsyncGenerator[bytes]:
        try:
            yield frame(data(first), first.seq)
            async for item in rest:
                yield frame(data(item), item.seq)
        except Exception as error:
            yield failure(error)

    return EventStream(frames())
