"""Worker processes behind one port: a real parent with real workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx
import pytest

pytestmark = [pytest.mark.process, pytest.mark.long]

SECONDS = 60
SERVER = """
    import os, sys
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    from ai_platform_engineering.settings import load_settings
    from ai_platform_engineering.utils.connection_limits import ConnectionLimits
    from ai_platform_engineering.utils.serving import listen, run
    from ai_platform_engineering.utils.worker_processes import run_workers

    async def process(request):
        return PlainTextResponse(str(os.getpid()))

    def say(line):
        os.write(1, f"{line}\\n".encode())  # at once, because two workers write to the same pipe

    def work(worker, on_ready):
        say(f"process {os.getpid()}")
        if "fail" in sys.argv and worker == 2:
            return 3
        return run(Starlette(routes=[Route("/", process)]), listener, on_ready, limits)

    limits = ConnectionLimits.of(load_settings({}, None))
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    sys.exit(run_workers(2, work, listener, lambda: say(f"ready http://127.0.0.1:{port}"), grace=0))
"""


@contextmanager
def parent(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", textwrap.dedent(SERVER), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def started(process: subprocess.Popen[str]) -> tuple[str, set[int]]:
    """The address of the server and the ids of its workers."""
    workers: set[int] = set()
    for line in process.stdout or ():
        kind, value = line.split()
        if kind == "ready":
            return value, workers
        workers.add(int(value))
    raise AssertionError("the server did not start")


def eventually(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def are_gone(workers: set[int]) -> bool:
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker, 0)
            return False
    return True


def served_by(url: str) -> int:
    return int(httpx.get(url, timeout=SECONDS).text)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_workers_share_a_port_and_stop_with_their_parent(stop: signal.Signals) -> None:
    with parent() as process:
        url, workers = started(process)
        assert len(workers) == 2
        assert served_by(url) in workers

        process.send_signal(stop)

        assert process.wait(SECONDS) == 0
        assert are_gone(workers)


def test_a_worker_that_dies_is_restarted_and_the_other_one_serves_meanwhile() -> None:
    with parent() as process:
        url, workers = started(process)
        dead = workers.pop()
        (other,) = workers
        os.kill(other, signal.SIGSTOP)  # so that the one that is restarted must answer
        os.kill(dead, signal.SIGKILL)

        served = served_by(url)

        assert served not in {dead, other}
        os.kill(other, signal.SIGCONT)
        process.terminate()
        assert process.wait(SECONDS) == 0
        assert are_gone({served, other})


def test_workers_end_when_their_parent_is_killed() -> None:
    with parent() as process:
        _, workers = started(process)

        process.kill()

        eventually(lambda: are_gone(workers))


def test_a_worker_that_cannot_start_ends_the_server() -> None:
    with parent("fail") as process:
        assert process.wait(SECONDS) == 1
