"""Server-sent events: one frame per item, its number as the id, so that a client can say where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ai_platform_engineering.storage.event_log.event_log import Entry, Snapshot
from ai_platform_engineering.storage.event_log.task_fold import ends_task
from ai_platform_engineering.utils.a2a_common.codec.event_json import ProtocolVersion, dumps, stream_json

PING_SECONDS: Final = 15.0
"""Proxies close a connection on which nothing is said; a comment is enough to keep it."""

_PING: Final = b": ping\r\n\r\n"
_MAX_CONCURRENT: Final = 64


def frame(data: bytes, seq: int | None = None, event: str | None = None) -> bytes:
    head = "" if seq is None else f"id: {seq}\r\n"
    if event is not None:
        head += f"event: {event}\r\n"
    return b"%sdata: %s\r\n\r\n" % (head.encode(), data)


def item_json(item: Snapshot | Entry, version: ProtocolVersion) -> bytes:
    return dumps(stream_json(item.task if isinstance(item, Snapshot) else item.event, version))


class Chunk(NamedTuple):
    """Frames that go out together."""

    frames: bytes
    is_last: bool = False


class EventStream(Response):
    """Sends frames as they come, until they end or the caller is gone.

    A thousand streams may be waiting at once, so each is one small task beside that of its request and no more.
    """

    media_type = "text/event-stream"

    def __init__(
        self, chunks: AsyncGenerator[Chunk], ping_seconds: float = PING_SECONDS, *, first_is_there: bool = False
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks
        self._ping_seconds = ping_seconds
        self._first_is_there = first_is_there
        self._spoke = False
        self._is_over = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # One that is there need not wait until the work that was begun with it pauses for the first time.
        first = await anext(self._chunks) if self._first_is_there else None
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if first is not None:
            await self._send(first, send)
        writer = asyncio.create_task(self._write(send))
        try:
            # A server also says that the caller is gone when it has sent the end.
            while not (await self._gone(receive) or writer.done()):
                if not self._spoke:
                    await send({"type": "http.response.body", "body": _PING, "more_body": True})
                self._spoke = False
        finally:
            writer.cancel()
            await asyncio.wait({writer})
        if not writer.cancelled():
            writer.result()

    async def _gone(self, receive: Receive) -> bool:
        """Whether the caller goes before it is time for a ping."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._ping_seconds):
                while (await receive())["type"] != "http.disconnect":
                    pass
                return True
        return False

    async def _write(self, send: Send) -> None:
        async with aclosing(self._chunks):
            async for chunk in self._chunks:
                await self._send(chunk, send)
        if not self._is_over:
            await self._send(Chunk(b"", is_last=True), send)

    async def _send(self, chunk: Chunk, send: Send) -> None:
        self._spoke, self._is_over = True, chunk.is_last
        await send({"type": "http.response.body", "body": chunk.frames, "more_body": not chunk.is_last})


def event_stream(
    first: Sequence[Snapshot | Entry],
    rest: AsyncIterator[Sequence[Snapshot | Entry]],
    data: Callable[[Snapshot | Entry], bytes],
    failure: Callable[[Exception], bytes],
) -> EventStream:
    """The stream as a response. `data` writes an item, `failure` says in a last frame what broke it off."""

    return EventStream(_chunks(first, rest, data, failure), first_is_there=True)


async def _chunks(
    first: Sequence[Snapshot | Entry],
    rest: AsyncIterator[Sequence[Snapshot | Entry]],
    data: Callable[[Snapshot | Entry], bytes],
    failure: Callable[[Exception], bytes],
) -> AsyncGenerator[Chunk]:
    try:
        yield _chunk(first, data)
        del first  # a stream may wait for long, and the task it began with is its largest part
        async for items in rest:
            for start in range(0, len(items), _MAX_CONCURRENT):
                yield _chunk(items[start : start + _MAX_CONCURRENT], data)
    except Exception as error:
        yield Chunk(failure(error))


def _chunk(items: Sequence[Snapshot | Entry], data: Callable[[Snapshot | Entry], bytes]) -> Chunk:
    # What goes out in one piece wakes whoever reads it once.
    last = items[-1]
    return Chunk(
        b"".join(frame(data(item), item.seq) for item in items),
        is_last=isinstance(last, Entry) and ends_task(last.event),
    )
