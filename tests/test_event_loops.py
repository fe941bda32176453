from __future__ import annotations

import asyncio
import gc
import signal
import socket

import pytest

from ai_platform_engineering.terminal.background import BackgroundLoop
from tests import event_loops
from tests.event_loops import CheckedEventLoop


async def connect(server: asyncio.Server) -> asyncio.StreamWriter:
    """A connection that the server has closed: the loop does not wait for its data any more."""
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await reader.read()
    return writer


async def serve() -> asyncio.Server:
    async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    return await asyncio.start_server(close, "127.0.0.1", 0)


def test_a_connection_that_stays_open_is_named() -> None:
    async def leave_open() -> tuple[object, object]:
        async with await serve() as server:
            writer = await connect(server)
            return writer.get_extra_info("sockname"), writer

    loop = CheckedEventLoop()
    own, writer = loop.run_until_complete(leave_open())
    with pytest.raises(AssertionError) as failure:
        loop.close()
    assert f"a connection from {own} to " in str(failure.value)
    assert "asyncio.streams.StreamReaderProtocol" in str(failure.value)
    assert loop.is_closed()
    # The socket is closed: the collector has nothing to warn of.
    del writer
    gc.collect()


def test_a_listener_that_stays_open_is_named() -> None:
    loop = CheckedEventLoop()
    server = loop.run_until_complete(serve())
    descriptor = server.sockets[0].fileno()
    with pytest.raises(AssertionError, match=f"descriptor {descriptor}, watched by "):
        loop.close()
    server.close()


def test_closed_connections_are_no_failure() -> None:
    async def close() -> None:
        async with await serve() as server:
            (await connect(server)).close()

    loop = CheckedEventLoop()
    loop.run_until_complete(close())
    loop.close()
    loop.close()


def test_a_peer_that_does_not_read_keeps_no_socket_open() -> None:
    async def close_with_unread_data(address: tuple[str, int]) -> asyncio.Transport:
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, *address)
        transport.write(bytes(50_000_000))
        transport.close()
        assert transport.get_write_buffer_size()
        return transport

    loop = CheckedEventLoop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        transport = loop.run_until_complete(close_with_unread_data(listener.getsockname()))
        loop.close()
    assert transport.get_extra_info("socket").fileno() == -1


def test_a_process_that_runs_is_named_and_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loops, "_EXIT_SECONDS", 0.1)
    loop = CheckedEventLoop()
    process = loop.run_until_complete(asyncio.create_subprocess_exec("sleep", "600"))
    with pytest.raises(AssertionError, match=r"the process of \('sleep', '600'\)"):
        loop.close()
    assert process.returncode == -signal.SIGKILL


def test_a_process_that_was_killed_is_no_failure() -> None:
    async def kill() -> None:
        (await asyncio.create_subprocess_exec("sleep", "600")).kill()

    loop = CheckedEventLoop()
    loop.run_until_complete(kill())
    loop.close()
    gc.collect()


async def test_async_tests_run_in_it() -> None:
    assert isinstance(asyncio.get_running_loop(), CheckedEventLoop)


def test_other_loops_are_checked_too() -> None:
    async def running() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert isinstance(asyncio.run(running()), CheckedEventLoop)
    with BackgroundLoop() as background:
        assert isinstance(background.submit(running()).result(), CheckedEventLoop)
