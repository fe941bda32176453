"""A server program on a port of this machine, with its data in a directory of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.ports import port_of, reserve

START_SECONDS = 60

# The shell kills the server when its input closes, also when the test process was killed.
_UNTIL_CLOSED = """
"$@" &
server=$!
read -r signal
kill -s "${signal:-KILL}" $server
wait $server
"""


class LocalServer:
    """`answers` raises as long as the server is not ready."""

    def __init__(self, command: Callable[[LocalServer], Sequence[str]], answers: Callable[[LocalServer], None]) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="server-"))
        self._reservation = reserve()
        self.port = port_of(self._reservation)
        self._command = command
        self._answers = answers
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """The shell that the server is a child of."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        log_file = self.directory / "log"
        with log_file.open("a") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _UNTIL_CLOSED, "sh", *self._command(self)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                cwd=self.directory,
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._answers(self)
            except Exception as error:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.stop("KILL")
                    raise RuntimeError(f"The server did not start:\n{log_file.read_text('utf-8')}") from error
                time.sleep(0.05)
            else:
                return

    def stop(self, signal: str = "TERM") -> None:
        if self._process is not None:
            self._process.communicate(f"{signal}\n", timeout=START_SECONDS)
            self._process = None

    @contextmanager
    def running(self) -> Iterator[LocalServer]:
        try:
            self.start()
            yield self
        finally:
            self.stop("KILL")
            self._reservation.close()
            shutil.rmtree(self.directory)
