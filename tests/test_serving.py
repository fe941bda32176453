from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from ai_platform_engineering.utils.serving import ListenError, listen

APP = """
    import asyncio, os, sys
    from contextlib import asynccontextmanager
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, StreamingResponse
    from starlette.routing import Route
    from ai_platform_engineering.settings import load_settings
    from ai_platform_engineering.utils import serving
    from ai_platform_engineering.utils.connection_limits import ConnectionLimits
    from ai_platform_engineering.utils.serving import listen, run

    if "brief" in sys.argv:
        serving.KEEP_ALIVE_SECONDS = 0.1

    async def hello(request):
        return PlainTextResponse("hello")

    async def endless(request):
        async def parts():
            while True:
                yield "part"
                await asyncio.sleep(0.05)
        return StreamingResponse(parts())

    @asynccontextmanager
    async def lifespan(app):
        if "fail" in sys.argv:
            raise RuntimeError("cannot start")
        yield
        print("closed", flush=True)

    app = Starlette(routes=[Route("/", hello), Route("/endless", endless)], lifespan=lifespan)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    limits = ConnectionLimits.of(load_settings({}, None))
    sys.exit(run(app, listener, lambda: print(f"ready http://127.0.0.1:{port}", flush=True), limits))
"""


@contextmanager
def serving_process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", textwrap.dedent(APP), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ready_address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    word, address = process.stdout.readline().split()
    assert word == "ready"
    return address


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal_and_ends_in_order(stop: signal.Signals) -> None:
    with serving_process() as process:
        answer = httpx.get(ready_address(process))
        assert answer.text == "hello"
        assert "server" not in answer.headers
        process.send_signal(stop)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "closed\n")
    assert "Traceback" not in errors


def test_a_stream_that_never_ends_does_not_hold_up_the_end() -> None:
    with serving_process() as process:
        address = ready_address(process)
        with httpx.Client() as client, client.stream("GET", f"{address}/endless") as response:
            next(response.iter_text())
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "closed\n")


def test_an_idle_connection_is_closed_after_the_keep_alive_time() -> None:
    with serving_process("brief") as process:
        address = httpx.URL(ready_address(process))
        # Within uvicorn's own five seconds, which a client that keeps connections for longer would run into.
        with socket.create_connection((address.host, address.port or 0), timeout=4) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            received = b""
            while part := connection.recv(1000):
                received += part
    assert received.endswith(b"hello")


def test_an_app_that_does_not_start_is_never_ready() -> None:
    with serving_process("fail") as process:
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, "")
    assert "cannot start" in errors


class TestListen:
    def test_any_free_port(self) -> None:
        with listen("127.0.0.1", 0) as first, listen("127.0.0.1", 0) as second:
            assert 0 < first.getsockname()[1] != second.getsockname()[1]

    def test_a_port_in_use(self) -> None:
        with listen("127.0.0.1", 0) as first:
            port = first.getsockname()[1]
            with pytest.raises(ListenError, match=rf"Port {port} on 127.0.0.1 is already in use.*--port"):
                listen("127.0.0.1", port)

    @pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1", "a" * 300])
    def test_an_address_of_another_machine(self, host: str) -> None:
        with pytest.raises(ListenError, match=r"is not an address of this machine.*--host"):
            listen(host, 0)

    def test_a_port_can_be_used_again_at_once(self) -> None:
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = listener.accept()
            accepted.close()
        listener.close()
        listen("127.0.0.1", port).close()
