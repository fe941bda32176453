"""Server-sent events: one frame per item, its number as the id, so that a client can say where it stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from sse_starlette.sse import EventSourceResponse

from ai_platform_engineering.utils.a2a_common.http.event_json import ProtocolVersion, dumps, stream_json
from ai_platform_engineering.utils.a2a_common.log.event_log import Entry, Snapshot

PING_SECONDS: Final = 15


def frame(data: bytes, seq: int | None = None, event: str | None = None) -> bytes:
    head = "" if seq is None else f"id: {seq}\r\n"
    if event is not None:
        head += f"event: {event}\r\n"
    return b"%sdata: %s\r\n\r\n" % (head.encode(), data)


def item_json(item: Snapshot | Entry, version: ProtocolVersion) -> bytes:
    return dumps(stream_json(item.task if isinstance(item, Snapshot) else item.event, version))


def event_stream(
    first: Snapshot | Entry,
    rest: AsyncIterator[Snapshot | Entry],
    data: Callable[[Snapshot | Entry], bytes],
    failure: Callable[[Exception], bytes],
) -> EventSourceResponse:
    """The stream as a response. `data` writes an item, `failure` says in a last frame what broke it off."""

    async def frames() -> AsyncIterator[bytes]:
        try:
            yield frame(data(first), first.seq)
            async for item in rest:
                yield frame(data(item), item.seq)
        except Exception as error:
            yield failure(error)

    return EventSourceResponse(frames(), ping=PING_SECONDS)
