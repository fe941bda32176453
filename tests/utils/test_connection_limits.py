"""Clients that send too much, too slowly or not at all, against a real server with small limits."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import pytest

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.connection_limits import ConnectionLimits, exempt_networks

pytestmark = pytest.mark.process

SECONDS = 30
MAX_CONNECTIONS = 8
PER_ADDRESS = 3
MAX_HEADER_BYTES = 4096
SERVER = f"""
    import asyncio, json, sys
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
    from starlette.routing import Route
    from ai_platform_engineering.utils import connection_limits, serving
    from ai_platform_engineering.utils.connection_limits import ConnectionLimits
    from ai_platform_engineering.utils.serving import listen, run

    serving._TICKS_PER_SECOND = 1
    connection_limits.STALLED_SECONDS = 0.5
    connection_limits._GRACE_SECONDS = 0

    async def refuse(request):
        return PlainTextResponse("refused", 401)

    async def read(request):
        size = len(await request.body())
        return JSONResponse({{"size": size, "headers": sorted(request.headers)}})

    async def ticks(request):
        async def parts():
            while True:
                yield b"."
                await asyncio.sleep(0.1)
        return StreamingResponse(parts())

    async def much(request):
        async def parts():
            while True:
                yield b"." * 100_000
                await asyncio.sleep(0)
        return StreamingResponse(parts())

    app = Starlette(routes=[
        Route("/refuse", refuse, methods=["POST"]), Route("/read", read, methods=["GET", "POST"]),
        Route("/ticks", ticks), Route("/much", much),
    ])
    limits = ConnectionLimits({MAX_CONNECTIONS}, {PER_ADDRESS}, {MAX_HEADER_BYTES}, 0.5, 0.5, "127.0.0.1")
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    sys.exit(run(app, listener, lambda: print(port, flush=True), limits))
"""
GET = b"GET /read HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /read HTTP/1.1\r\nHost: a\r\n"
HALF = b"GET /read HTTP/1.1\r\nHost: a\r\nX-Half: "
TICKS = b"GET /ticks HTTP/1.1\r\nHost: a\r\n\r\n"


@dataclass(frozen=True)
class Server:
    port: int

    @contextmanager
    def connection(self, sent: bytes = b"", address: str = "127.0.0.1") -> Iterator[socket.socket]:
        where = ("127.0.0.1", self.port)
        with closing(socket.create_connection(where, timeout=SECONDS, source_address=(address, 0))) as connection:
            connection.sendall(sent)
            yield connection

    def response(self, sent: bytes, address: str = "127.0.0.1") -> bytes:
        """Everything that the server sends before it closes the connection."""
        with self.connection(sent, address) as connection:
            return until_closed(connection)

    def answers(self, address: str = "127.0.0.1") -> bool:
        with self.connection(GET, address) as connection:
            return connection.recv(100).startswith(b"HTTP/1.1 200")


def until_closed(connection: socket.socket) -> bytes:
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def is_streaming(connection: socket.socket) -> bool:
    return b"." in connection.recv(1000)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield Server(int(process.stdout.readline()))
        finally:
            process.kill()


@pytest.mark.parametrize(
    "sent",
    [
        GET[:5] + b"a" * MAX_HEADER_BYTES,
        HALF + b"a" * MAX_HEADER_BYTES,
        HALF + b"a" * MAX_HEADER_BYTES + b"\r\n\r\n",
        GET[:-2] + b"a: b\r\n" * 101,
        GET[:-2] + b"a: b\r\n" * 100 + b"\r\n",
        b"\r\n" * MAX_HEADER_BYTES,
    ],
    ids=["line", "header", "complete", "number", "complete number", "empty lines"],
)
def test_a_header_is_limited(server: Server, sent: bytes) -> None:
    response = server.response(sent)
    assert response.startswith(b"HTTP/1.1 431 ")
    assert response.endswith(b"too many headers.")


def test_a_header_that_arrives_in_pieces_is_limited_in_all(server: Server) -> None:
    with server.connection(GET) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(HALF)
        try:
            for _ in range(100):
                connection.sendall(b"a" * 1000)
        except OSError:
            pass
        assert b"HTTP/1.1 431 " in until_closed(connection)


def test_a_body_may_be_larger_than_the_header(server: Server) -> None:
    size = 50 * MAX_HEADER_BYTES
    sent = POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % size + b"a" * size
    assert b'{"size":%d,' % size in server.response(sent)


def test_an_incomplete_header_times_out(server: Server) -> None:
    assert server.response(HALF).startswith(b"HTTP/1.1 408 ")
    assert server.response(b"") == b""
    with server.connection(GET) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"\r\n")  # an empty line before a request that never comes
        assert b"HTTP/1.1 408 " in until_closed(connection)


@pytest.mark.parametrize("framing", [b"Content-Length: 5\r\n\r\na", b"Transfer-Encoding: chunked\r\n\r\n5\r\na"])
def test_an_incomplete_body_times_out(server: Server, framing: bytes) -> None:
    assert server.response(POST + framing).startswith(b"HTTP/1.1 408 ")


def test_a_refused_request_cannot_keep_its_connection_with_a_slow_body(server: Server) -> None:
    with server.connection(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\na") as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 401 ")
        connection.sendall(b"a")
        assert b"HTTP/" not in until_closed(connection)


@pytest.mark.parametrize("start", [b"5;", b"0\r\nX-Trailer: "], ids=["extension", "trailer"])
def test_the_framing_of_chunks_is_limited(server: Server, start: bytes) -> None:
    with server.connection(POST + b"Transfer-Encoding: chunked\r\n\r\n" + start) as connection:
        try:
            for _ in range(100):
                connection.sendall(b"a" * MAX_HEADER_BYTES)
        except OSError:
            pass
        assert until_closed(connection).startswith(b"HTTP/1.1 400 ")


def test_trailers_do_not_become_headers(server: Server) -> None:
    framing = b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: Bearer a\r\n\r\n"
    assert b'"headers":["connection","host","transfer-encoding"]' in server.response(POST + framing)


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"X-Folded: a\r\n b\r\n",
    ],
)
def test_a_request_that_two_servers_could_read_differently_is_refused(server: Server, headers: bytes) -> None:
    response = server.response(POST + headers + b"\r\n0\r\n\r\n" + GET)
    assert (response[:13], response.count(b"HTTP/1.1 ")) == (b"HTTP/1.1 400 ", 1)


def test_many_pipelined_requests_close_the_connection(server: Server) -> None:
    assert server.response(GET * 1000).count(b"HTTP/1.1 200") <= 17
    with server.connection(GET * 3) as connection:
        received = b""
        while received.count(b"HTTP/1.1 200") < 3:
            received += connection.recv(1000)


def test_connections_without_a_complete_request_make_room_for_new_ones(server: Server) -> None:
    with ExitStack() as stack:
        stream = stack.enter_context(server.connection(TICKS))
        assert is_streaming(stream)
        half_open = [stack.enter_context(server.connection(HALF)) for _ in range(3 * MAX_CONNECTIONS)]
        assert server.answers()
        assert until_closed(half_open[0]) == b""
        assert is_streaming(stream)


def test_idle_connections_make_room_for_new_ones(server: Server) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(server.connection(GET)) for _ in range(2 * MAX_CONNECTIONS)]
        assert server.answers()
        assert until_closed(idle[0]).startswith(b"HTTP/1.1 200")


def test_no_room_is_made_at_the_cost_of_running_requests(server: Server) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(server.connection(TICKS)) for _ in range(MAX_CONNECTIONS)]
        assert all(map(is_streaming, streams))
        assert server.response(GET).startswith(b"HTTP/1.1 503 ")
        assert all(map(is_streaming, streams))


def test_an_address_has_its_own_limit_and_proxies_have_none(server: Server) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(server.connection(TICKS, "127.0.0.2")) for _ in range(PER_ADDRESS)]
        assert all(map(is_streaming, streams))
        assert server.response(GET, "127.0.0.2").startswith(b"HTTP/1.1 503 ")
        assert server.answers("127.0.0.3")
        proxied = [stack.enter_context(server.connection(TICKS)) for _ in range(PER_ADDRESS + 1)]
        assert all(map(is_streaming, proxied))


@pytest.mark.long
def test_streams_are_closed_only_if_the_client_reads_nothing(server: Server) -> None:
    with server.connection(TICKS) as stream, server.connection(b"GET /much HTTP/1.1\r\nHost: a\r\n\r\n") as unread:
        received = b""
        while received.count(b".") < 15:  # three times the time limits for requests
            received += stream.recv(1000)
        # The server has closed the connection, so it ends after what the kernel has buffered.
        until_closed(unread)
        assert is_streaming(stream)


def test_limits_come_from_the_settings() -> None:
    settings = load_settings({"MAX_CONNECTIONS": "7", "HEADER_TIMEOUT": "2", "FORWARDED_ALLOW_IPS": "10.0.0.0/8"}, None)
    assert ConnectionLimits.of(settings) == ConnectionLimits(7, 256, 32_768, 2, 30, "10.0.0.0/8")
    assert ConnectionLimits.of(load_settings({}, None)).connections >= 128


def test_proxies_are_addresses_networks_or_all() -> None:
    is_exempt = exempt_networks("127.0.0.1, 10.0.0.0/8,::1")
    assert [is_exempt(address) for address in ("10.1.2.3", "::1", "127.0.0.2", "unix")] == [True, True, False, False]
    assert exempt_networks("*")("192.0.2.1")
