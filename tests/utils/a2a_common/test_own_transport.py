"""Streams of our own agents, read by the client that is made for them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any

import aiohttp
import aiohttp.connector
import httpx
import pytest
from a2a.client import ClientCallContext
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import AgentCard, Message, Part, Role, SendMessageRequest, StreamResponse, TaskState
from a2a.utils.errors import A2AError, TaskNotFoundError
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.utils.a2a_common.client.own_transport import OwnTransport, new_session
from ai_platform_engineering.utils.a2a_common.codec.event_json import dumps
from ai_platform_engineering.utils.a2a_common.server.sse import frame
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.serving import KEEP_ALIVE_SECONDS
from tests.counted_threads import CountedThreads
from tests.integrations.slack_bot.virtual_clock import VirtualClock

TASK = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}
DONE = {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n"


def item(result: dict[str, Any], seq: int) -> bytes:
    return frame(dumps({"jsonrpc": "2.0", "id": "r", "result": result}), seq)


class Peer:
    """A server that answers every request with these pieces, each in a packet of its own, and then hangs up."""

    def __init__(self) -> None:
        self.pieces: Sequence[bytes] = ()
        self.asked = b""
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked = await reader.readuntil(b"\r\n\r\n")
        for piece in self.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()


@asynccontextmanager
async def peer(*pieces: bytes) -> AsyncIterator[Peer]:
    served = Peer()
    served.pieces = pieces
    server = await asyncio.start_server(served.answer, "127.0.0.1", 0)
    async with server:
        served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        yield served


async def read(
    url: str, headers: dict[str, str] | None = None, session: aiohttp.ClientSession | None = None
) -> list[StreamResponse]:
    message = Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text="hello")])
    async with AsyncExitStack() as opened:
        http = await opened.enter_async_context(httpx.AsyncClient())
        session = session or await opened.enter_async_context(new_session(url, 2.0))
        transport = OwnTransport(session, http, AgentCard(), url)
        answers = transport.send_message_streaming(
            SendMessageRequest(message=message), context=ClientCallContext(service_parameters=headers or {})
        )
        async with aclosing(answers):
            return [answer async for answer in answers]


@given(cuts=st.lists(st.integers(0, 600), max_size=8))
@settings(max_examples=25, deadline=None)
def test_wherever_the_packets_are_cut(cuts: list[int]) -> None:
    body = item({"task": TASK}, 0) + b": ping\r\n\r\n" + item({"statusUpdate": DONE}, 1)
    places = sorted({0, *(cut for cut in cuts if cut < len(body)), len(body)})
    pieces = [body[start:end] for start, end in itertools.pairwise(places)]

    async def scenario() -> list[StreamResponse]:
        async with peer(STREAM, *pieces) as served:
            return await read(served.url)

    task, done = asyncio.run(scenario())
    assert task.task.id == "t"
    assert done.status_update.status.state == TaskState.TASK_STATE_COMPLETED


async def test_what_is_asked_for() -> None:
    async with peer(STREAM, item({"statusUpdate": DONE}, 1)) as served:
        await read(served.url, {"Authorization": "Bearer key"})
    asked = served.asked.decode().casefold()
    assert "post / http/1.1" in asked
    assert "authorization: bearer key" in asked
    assert "a2a-version: 1.0" in asked
    assert "accept: text/event-stream" in asked


async def test_an_answer_of_several_megabytes() -> None:
    text = "x" * 3_000_000
    update = {"taskId": "t", "artifact": {"artifactId": "a", "parts": [{"text": text}]}}
    async with peer(STREAM, item({"artifactUpdate": update}, 1)) as served:
        (answer,) = await read(served.url)
    assert answer.artifact_update.artifact.parts[0].text == text


async def test_an_error_in_the_stream() -> None:
    error = dumps({"jsonrpc": "2.0", "id": "r", "error": {"code": -32001, "message": "gone"}})
    async with peer(STREAM, item({"task": TASK}, 0), frame(error, event="error")) as served:
        with pytest.raises(TaskNotFoundError):
            await read(served.url)


async def test_an_error_instead_of_a_stream() -> None:
    body = dumps({"jsonrpc": "2.0", "id": "r", "error": {"code": -32602, "message": "no"}})
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    async with peer(head.encode() + body) as served:
        with pytest.raises(A2AError, match="no"):
            await read(served.url)


@pytest.mark.parametrize("status", ["401 Unauthorized", "302 Found", "503 Unavailable"])
async def test_another_status(status: str) -> None:
    async with peer(f"HTTP/1.1 {status}\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n".encode()) as served:
        with pytest.raises(A2AClientError, match=f"HTTP {status[:3]}"):
            await read(served.url)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"result": 3}', b'{"result": {"statusUpdate": {"status": 3}}}'])
async def test_what_cannot_be_read(data: bytes) -> None:
    async with peer(STREAM, frame(data)) as served:
        with pytest.raises(A2AClientError):
            await read(served.url)


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ((), "the connection was closed without an answer"),
        ((b"nonsense\r\n\r\n",), "the connection was closed without an answer"),
        (
            (STREAM.replace(b"Connection: close", b"Content-Length: 99"), b": "),
            "the connection was closed without an answer",
        ),
    ],
    ids=["at once", "not http", "in the middle"],
)
async def test_a_connection_that_breaks(pieces: Sequence[bytes], reason: str) -> None:
    async with peer(*pieces) as served:
        with pytest.raises(httpx.HTTPError) as raised:
            await read(served.url)
    assert reason_of(raised.value) == reason


async def test_connection_refused() -> None:
    async with peer() as served:
        pass
    with pytest.raises(httpx.ConnectError) as raised:
        await read(served.url)
    assert reason_of(raised.value) == "connection refused"


async def test_a_host_that_does_not_exist() -> None:
    with pytest.raises(httpx.ConnectError) as raised:
        await read("http://nowhere.invalid/")
    assert reason_of(raised.value) == "host name not found"


@pytest.mark.parametrize(
    ("variable", "excluded", "goes_through"),
    [
        ("HTTP_PROXY", "", True),
        ("ALL_PROXY", "", True),
        ("HTTPS_PROXY", "", False),
        ("HTTP_PROXY", "other.example, nowhere.invalid", False),
        ("HTTP_PROXY", "invalid", False),
        ("HTTP_PROXY", "where.invalid", True),
        ("HTTP_PROXY", "nowhere.invalid:8000", False),
        ("HTTP_PROXY", "nowhere.invalid:8001", True),
        ("HTTP_PROXY", "*", False),
    ],
)
async def test_a_proxy_is_used_as_by_the_other_client(
    variable: str, excluded: str, goes_through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = "http://nowhere.invalid:8000/"
    asked = []
    async with peer(STREAM, item({"statusUpdate": DONE}, 1)) as proxy:
        monkeypatch.setenv(variable, proxy.url.replace("//", "//user:word@"))
        monkeypatch.setenv("NO_PROXY", excluded)
        for ask in (read, _ask_by_httpx):
            proxy.asked = b""
            with suppress(httpx.ConnectError):
                await ask(agent)
            asked.append(proxy.asked.decode())
    for request in asked:
        assert (f" {agent} HTTP/1.1" in request) is goes_through
        assert ("Proxy-Authorization: Basic dXNlcjp3b3Jk" in request) is goes_through


async def _ask_by_httpx(url: str) -> None:
    async with httpx.AsyncClient() as http:
        await http.get(url)


async def test_a_call_takes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://nowhere.invalid/")
    threads = CountedThreads()
    async with peer(STREAM, item({"statusUpdate": DONE}, 1)) as served:
        await read(served.url)
    assert threads.calls == 0


async def test_an_idle_connection_is_closed_before_the_agent_would_close_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()
    monkeypatch.setattr(aiohttp.connector, "monotonic", clock.now)
    body = item({"statusUpdate": DONE}, 1)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    connections, used = itertools.count(), list[int]()

    async def answer_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = next(connections)
        with suppress(asyncio.IncompleteReadError):
            while asked := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(asked.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
                used.append(connection)
                writer.write(head.encode() + body)
        writer.close()

    async with await asyncio.start_server(answer_each, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with new_session(url, 2.0) as session:
            for idle in (0, 50, KEEP_ALIVE_SECONDS - 1):
                clock.advance(idle)
                assert len(await read(url, session=session)) == 1
    assert used == [0, 0, 1]
