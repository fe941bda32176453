"""Server-sent events: one frame per item. Its number is the SSE id, so that a client can resume the stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ai_platform_engineering.storage.event_log.event_log import Entry, Snapshot
from ai_platform_engineering.storage.event_log.task_fold import ends_task
from ai_platform_engineering.utils.a2a_common.codec.event_json import ProtocolVersion, dumps, stream_json

PING_SECONDS: Final = 15.0
"""Proxies close idle connections; a comment keeps them open."""

_PING: Final = b": ping\r\n\r\n"
_MAX_FRAMES: Final = 64


def frame(data: bytes, seq: int | None = None, event: str | None = None) -> bytes:
    head = "" if seq is None else f"id: {seq}\r\n"
    if event is not None:
        head += f"event: {event}\r\n"
    return b"%sdata: %s\r\n\r\n" % (head.encode(), data)


def item_json(item: Snapshot | Entry, version: ProtocolVersion) -> bytes:
    return dumps(stream_json(item.task if isinstance(item, Snapshot) else item.event, version))


class SseChunk(NamedTuple):
    """Frames that are sent together."""

    frames: bytes
    is_last: bool = False


@dataclass(slots=True)
class OpenStreams:
    """The number of streams of a server that are open."""

    count: int = 0


class EventStream(Response):
    """Sends frames as they come, until the stream ends or the caller disconnects.

    A thousand streams may be idle at once, so each has only one task besides that of its request.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        chunks: AsyncGenerator[SseChunk],
        ping_seconds: float = PING_SECONDS,
        *,
        first_is_ready: bool = False,
        streams: OpenStreams | None = None,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks
        self._ping_seconds = ping_seconds
        self._first_is_ready = first_is_ready
        self._streams = streams or OpenStreams()
        self._sent_since_ping = False
        self._ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A chunk that is ready is sent before the run, which was just started, gets the event loop.
        first = await anext(self._chunks) if self._first_is_ready else None
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if first is not None:
            await self._send(first, send)
        writer = asyncio.create_task(self._write(send))
        self._streams.count += 1
        try:
            # A server also reports a disconnect after the end of the response.
            while not (await self._disconnected(receive) or writer.done()):
                if not self._sent_since_ping:
                    await send({"type": "http.response.body", "body": _PING, "more_body": True})
                self._sent_since_ping = False
        finally:
            self._streams.count -= 1
            writer.cancel()
            await asyncio.wait({writer})
        if not writer.cancelled():
            writer.result()

    async def _disconnected(self, receive: Receive) -> bool:
        """Wait until the next ping is due. True if the caller disconnects before that."""
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
        if not self._ended:
            await self._send(SseChunk(b"", is_last=True), send)

    async def _send(self, chunk: SseChunk, send: Send) -> None:
        self._sent_since_ping, self._ended = True, chunk.is_last
        await send({"type": "http.response.body", "body": chunk.frames, "more_body": not chunk.is_last})


def event_stream(
    first: Sequence[Snapshot | Entry],
    rest: AsyncIterator[Sequence[Snapshot | Entry]],
    data: Callable[[Snapshot | Entry], bytes],
    failure: Callable[[Exception], bytes],
    streams: OpenStreams,
) -> EventStream:
    """The stream as a response, counted in `streams`. `data` encodes an item, `failure` the error in the last frame."""
    return EventStream(_chunks(first, rest, data, failure), first_is_ready=True, streams=streams)


async def _chunks(
    first: Sequence[Snapshot | Entry],
    rest: AsyncIterator[Sequence[Snapshot | Entry]],
    data: Callable[[Snapshot | Entry], bytes],
    failure: Callable[[Exception], bytes],
) -> AsyncGenerator[SseChunk]:
    try:
        yield _chunk(first, data)
        del first  # frees the task, the largest part of an idle stream
        async for items in rest:
            for start in range(0, len(items), _MAX_FRAMES):
                yield _chunk(items[start : start + _MAX_FRAMES], data)
    except Exception as error:
        yield SseChunk(failure(error))


def _chunk(items: Sequence[Snapshot | Entry], data: Callable[[Snapshot | Entry], bytes]) -> SseChunk:
    # Sent in one piece, the frames wake the reader once.
    last = items[-1]
    return SseChunk(
        b"".join(frame(data(item), item.seq) for item in items),
        is_last=isinstance(last, Entry) and ends_task(last.event),
    )
