"""The stream as a response, over ASGI: what a caller gets, and what is left when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ai_platform_engineering.utils.a2a_common.server.sse import EventStream, SseChunk, frame


class Caller:
    """The two ends of an ASGI connection; `leave` closes it."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self._news = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.got.append(dict(message))
        self._news.set()
        if message.get("more_body") is False:
            # As servers do: the end of the answer is the end of the conversation.
            self.left.set()

    async def has(self, part: bytes, times: int = 1) -> None:
        async with asyncio.timeout(90):
            while self.body.count(part) < times:
                self._news.clear()
                await self._news.wait()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.got)


async def respond(stream: EventStream, caller: Caller) -> None:
    await stream({"type": "http"}, caller.receive, caller.send)


async def test_frames_are_sent_as_they_come_and_the_response_is_ended() -> None:
    async def frames() -> AsyncGenerator[SseChunk]:
        yield SseChunk(frame(b"one", 1))
        yield SseChunk(frame(b"two", 2, "error"))

    caller = Caller()
    await respond(EventStream(frames()), caller)
    start, *bodies = caller.got
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert headers["content-type"].startswith("text/event-stream")
    assert "content-length" not in headers
    assert caller.body == b"id: 1\r\ndata: one\r\n\r\nid: 2\r\nevent: error\r\ndata: two\r\n\r\n"
    assert [message["more_body"] for message in bodies] == [True, True, False]


async def test_the_end_goes_out_with_the_last_frame_where_that_is_known() -> None:
    async def frames() -> AsyncGenerator[SseChunk]:
        yield SseChunk(frame(b"one", 1) + frame(b"two", 2))
        yield SseChunk(frame(b"three", 3), is_last=True)

    caller = Caller()
    await respond(EventStream(frames()), caller)
    assert [message["more_body"] for message in caller.got[1:]] == [True, False]
    assert caller.body.count(b"data: ") == 3


async def test_a_first_frame_that_is_ready_does_not_wait_for_other_work() -> None:
    async def frames() -> AsyncGenerator[SseChunk]:
        yield SseChunk(frame(b"one", 1))
        await asyncio.Event().wait()

    caller = Caller()
    others = asyncio.Event()
    seen: list[bytes] = []

    async def other_work() -> None:
        seen.append(caller.body)
        others.set()

    answering = asyncio.create_task(respond(EventStream(frames(), first_is_ready=True), caller))
    working = asyncio.create_task(other_work())
    await others.wait()
    assert seen == [b"id: 1\r\ndata: one\r\n\r\n"]
    caller.left.set()
    await asyncio.gather(answering, working)


async def test_an_idle_stream_stays_open_with_comments() -> None:
    go_on = asyncio.Event()

    async def frames() -> AsyncGenerator[SseChunk]:
        await go_on.wait()
        yield SseChunk(frame(b"late", 1))

    caller = Caller()
    answering = asyncio.create_task(respond(EventStream(frames(), ping_seconds=0.01), caller))
    await caller.has(b": ping", times=3)
    go_on.set()
    await answering
    assert caller.body.endswith(b"id: 1\r\ndata: late\r\n\r\n")


async def test_nothing_is_left_of_a_stream_whose_caller_is_gone() -> None:
    closed = asyncio.Event()

    async def frames() -> AsyncGenerator[SseChunk]:
        try:
            yield SseChunk(frame(b"one", 1))
            await asyncio.sleep(60)
        finally:
            closed.set()

    caller = Caller()
    answering = asyncio.create_task(respond(EventStream(frames()), caller))
    await caller.has(b"one")
    caller.left.set()
    await asyncio.wait_for(answering, 90)
    assert closed.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_goes_wrong_while_sending_is_not_swallowed() -> None:
    async def frames() -> AsyncGenerator[SseChunk]:
        yield SseChunk(frame(b"one", 1))
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await respond(EventStream(frames(), ping_seconds=0.01), Caller())
