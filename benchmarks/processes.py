"""Processes that are measured: started, watched and ended here and nowhere else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

ROOT: Final = Path(__file__).parents[1]
_INHERITED: Final = ("PATH", "HOME", "LANG", "TMPDIR")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_STOP_SECONDS: Final = 10


class NotStartedError(RuntimeError):
    """A process that was to be measured ended before it was ready."""


@dataclass(frozen=True)
class Process:
    """A process that has said it is ready."""

    pid: int
    ready_line: str
    ready_after: float
    stdin: IO[str]
    stdout: IO[str]

    @property
    def url(self) -> str:
        found = re.search(r"http://[\w.:]+", self.ready_line)
        if found is None:
            raise NotStartedError(f"{self.ready_line!r} names no address")
        return found[0]

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * _PAGE / 1e6

    def calls(self) -> int:
        """How many functions were called since it was last asked, by a process that counts them."""
        os.kill(self.pid, signal.SIGUSR1)
        return int(self.stdout.readline())

    def order(self, command: Mapping[str, Any]) -> Any:
        """Send one line of JSON, and wait for the one that answers it."""
        self.stdin.write(json.dumps(command) + "\n")
        self.stdin.flush()
        return json.loads(self.stdout.readline())

    def kill(self) -> None:
        """Kill the process, and return when it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        # `started` reaps it.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)


def cpu_seconds(pid: int) -> float:
    """User and system time of the process and of those it has started."""
    return sum(_cpu_clock(each) for each in _family(pid))


@contextmanager
def started(module: str, *arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[Process]:
    """`python -m module`, from the moment when it has written its first line."""
    with tempfile.TemporaryFile("w+") as errors:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**_environ(), **(environ or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            if not line:
                errors.seek(0)
                raise NotStartedError(f"{module} {' '.join(arguments)} did not start:\n{errors.read()[-2000:]}")
            yield Process(process.pid, line, time.perf_counter() - begun, process.stdin, process.stdout)
        finally:
            _stop(process)


def _environ() -> dict[str, str]:
    """Nothing of what the person has configured: the numbers are those of a fresh installation."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _cpu_clock(pid: int) -> float:
    # The kernel's clock of another process's CPU time, as clock_getcpuclockid(3) makes it: nanoseconds, where
    # /proc/<pid>/stat counts in hundredths of a second.
    # A process of a database server may have ended meanwhile.
    with suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)
    return 0.0


def _family(pid: int) -> Sequence[int]:
    family = [pid]
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                family += _family(int(child))
    return family
