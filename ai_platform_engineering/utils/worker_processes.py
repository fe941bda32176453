"""Worker processes of one server: forks of a parent that restarts them and passes signals on.

The parent only waits, so nothing in it can fail. The workers share its listening socket: connections that a worker has
not accepted when it dies go to another one.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from socket import socket
from types import FrameType
from typing import Final

logger = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
_RESTART_SECONDS: Final = 1.0
"""Pause before the restart of a worker that ended soon after its start."""
_KILL_SECONDS: Final = 15.0
"""Time for a worker to stop after its grace, before it is killed."""

Work = Callable[[int, Callable[[], None]], int]
"""Gets the number of the worker, from 1, and a function to call when it is ready. Returns an exit code."""


def run_workers(number: int, work: Work, listener: socket, on_ready: Callable[[], None], *, grace: float) -> int:
    """Run `work` in that many processes until SIGINT or SIGTERM. The exit code is 0 if all of them end with 0.

    `on_ready` is called once, when all workers are ready.
    """
    return _Parent(work, listener, on_ready, grace).run(number)


@dataclass(slots=True)
class _Pipe:
    read_end: int
    write_end: int

    @classmethod
    def opened(cls) -> _Pipe:
        return cls(*os.pipe())


@dataclass(slots=True)
class _Parent:
    work: Work
    listener: socket
    on_ready: Callable[[], None]
    grace: float
    workers: dict[int, tuple[int, float]] = field(default_factory=dict)
    """By process id: the number of the worker and its start time."""
    due: dict[int, float] = field(default_factory=dict)
    """By number: when a worker that has ended is started again."""
    not_ready: int = 0
    failed: bool = False
    kill_at: float | None = None
    """When workers that still run are killed. None until the server stops."""
    signals: _Pipe = field(default_factory=_Pipe.opened)
    ready: _Pipe = field(default_factory=_Pipe.opened)
    life: _Pipe = field(default_factory=_Pipe.opened)
    """Nothing is written into it: workers stop when its other end closes, because the parent has died."""

    def run(self, number: int) -> int:
        os.set_blocking(self.signals.write_end, False)
        signal.set_wakeup_fd(self.signals.write_end)
        for signal_number in _SIGNALS:
            signal.signal(signal_number, _ignore)
        self.not_ready = number
        for worker in range(1, number + 1):
            self._start(worker)
        with selectors.DefaultSelector() as selector:
            selector.register(self.signals.read_end, selectors.EVENT_READ, self._handle_signals)
            selector.register(self.ready.read_end, selectors.EVENT_READ, self._count_ready)
            while self.workers or (self.due and self.kill_at is None):
                for key, _ in selector.select(self._timeout()):
                    key.data(os.read(key.fd, 64))
                self._act_on_time()
        return 1 if self.failed else 0

    def _start(self, worker: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            code = 1
            try:
                self._become_worker()
                code = self.work(worker, self._report_ready)
            except BaseException:
                logger.exception("worker %d failed", worker)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        self.workers[process] = worker, time.monotonic()

    def _become_worker(self) -> None:
        signal.set_wakeup_fd(-1)
        for signal_number in _SIGNALS:
            signal.signal(signal_number, signal.SIG_DFL)
        # A terminal sends Ctrl-C to the whole group; workers get it once, from the parent.
        os.setpgid(0, 0)
        os.close(self.life.write_end)
        threading.Thread(target=self._stop_with_parent, daemon=True, name="parent-watch").start()

    def _report_ready(self) -> None:
        os.write(self.ready.write_end, b".")

    def _stop_with_parent(self) -> None:
        os.read(self.life.read_end, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _handle_signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGCHLD:
                self._reap()
            else:
                self._stop(signal.Signals(number))

    def _stop(self, signal_number: signal.Signals) -> None:
        # Connections that no worker has accepted are refused from now on.
        self.listener.close()
        self.kill_at = time.monotonic() + self.grace + _KILL_SECONDS
        for process in self.workers:
            os.kill(process, signal_number)

    def _reap(self) -> None:
        for process in list(self.workers):
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                worker, started = self.workers.pop(process)
                self._ended(worker, os.waitstatus_to_exitcode(status), time.monotonic() - started)

    def _ended(self, worker: int, code: int, seconds: float) -> None:
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        if self.kill_at is not None:
            self.failed = self.failed or code != 0
        elif self.not_ready:
            logger.error("Worker %d ended during the start (%s), so the server stops", worker, reason)
            self.failed = True
            self._stop(signal.SIGTERM)
        else:
            logger.warning("Worker %d ended (%s) and is restarted", worker, reason)
            pause = _RESTART_SECONDS if seconds < _RESTART_SECONDS * 10 else 0.0
            self.due[worker] = time.monotonic() + pause

    def _count_ready(self, received: bytes) -> None:
        if self.not_ready:
            self.not_ready = max(0, self.not_ready - len(received))
            if not self.not_ready:
                self.on_ready()

    def _timeout(self) -> float | None:
        times = [*self.due.values(), *([] if self.kill_at is None else [self.kill_at])]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _act_on_time(self) -> None:
        now = time.monotonic()
        if self.kill_at is not None:
            self.due.clear()
            if now >= self.kill_at:
                self.kill_at = now + _KILL_SECONDS
                for process in self.workers:
                    os.kill(process, signal.SIGKILL)
        for worker in [worker for worker, due in self.due.items() if now >= due]:
            del self.due[worker]
            self._start(worker)


def _ignore(_signal: int, _frame: FrameType | None) -> None:
    """A handler, so that the signal is written to the wake-up pipe and does not end the process."""
