"""The undocumented parts of uvicorn: its protocol on httptools and the cycle of a request."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

SECONDS = 30
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def _app(_scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204})
    await send({"type": "http.response.body"})


class _Protocol(HttpToolsProtocol):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config, ServerState(), {})
        self.response = asyncio.Event()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.response.set()


async def test_the_parts_of_a_request_that_limits_depend_on() -> None:
    config = uvicorn.Config(_app, log_config=None, ws="none", lifespan="off", timeout_keep_alive=60)
    protocol = _Protocol(config)
    transport = _Transport()
    protocol.connection_made(transport)
    assert protocol.cycle is None
    assert (protocol.client, list(protocol.pipeline)) == (None, [])
    assert (protocol.flow.read_paused, protocol.flow.write_paused) == (False, False)

    protocol.data_received(CHUNKED[:30])
    begun = protocol.scope
    assert begun is not None
    assert (protocol.url, protocol.headers, protocol.cycle) == (b"/", [(b"host", b"a")], None)
    protocol.data_received(CHUNKED[30:])
    cycle = protocol.cycle
    assert protocol.scope is begun is cycle.scope
    assert begun["headers"] is protocol.headers
    protocol.data_received(b"2;extension\r\nab\r\n")
    assert bytes(cycle.body) == b"ab"
    assert (cycle.response_started, cycle.response_complete) == (False, False)

    protocol.data_received(b"0\r\n\r\n" + CHUNKED)
    assert protocol.cycle is not cycle
    assert [pipelined for pipelined, _ in protocol.pipeline] == [protocol.cycle]
    await asyncio.wait_for(protocol.response.wait(), SECONDS)
    protocol.response.clear()
    assert (cycle.response_started, cycle.response_complete) == (True, True)
    assert transport.written.startswith(b"HTTP/1.1 204 ")
    assert protocol.timeout_keep_alive_task is None
    protocol.data_received(b"0\r\n\r\n")
    await asyncio.wait_for(protocol.response.wait(), SECONDS)
    assert protocol.timeout_keep_alive_task is not None
    protocol._unset_keepalive_if_required()
    assert protocol.timeout_keep_alive_task is None
