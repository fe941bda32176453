"""The numbers of all workers of one server, for a scrape that any of them answers.

Each worker has a Unix socket and a file in a directory that the workers share. A worker writes its numbers to its file
when another one connects to its socket. A scrape connects to all workers, waits a limited time, and adds up the files.
The file of a worker that does not answer has its numbers as of the last scrape. A worker that is restarted continues
with the counters in its file, so counters never decrease.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, replace
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ai_platform_engineering.audit.log import AuditState
from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.utils.a2a_common.server.metrics import ProcessValues, RunMetrics, Scrape, ServerState
from ai_platform_engineering.utils.a2a_common.server.run_counts import RunCounts

logger = logging.getLogger(__name__)

_ANSWER_SECONDS: Final = 1.0
_ANSWER: Final = b"."
_MAX_SOCKET_PATH: Final = 100
"""Operating systems allow 104 to 108 bytes."""


@contextmanager
def worker_directory(workers: int) -> Iterator[Path]:
    """A directory for the workers of one server, which only its user can read."""
    try:
        made = TemporaryDirectory(prefix="platform-engineer-")
    except OSError as error:
        raise _unusable(workers, str(error)) from error
    with made as name:
        if len(os.fsencode(_socket(Path(name), workers))) > _MAX_SOCKET_PATH:
            raise _unusable(workers, f"the path {name} is too long for a socket")
        yield Path(name)


def _unusable(workers: int, reason: str) -> SettingsError:
    return SettingsError(
        f"--workers {workers} needs a temporary directory for the sockets of the workers: {reason}. Set TMPDIR to "
        "another one, for example /tmp."
    )


class WorkerMetrics:
    """The metrics of worker number `worker` of `workers`."""

    def __init__(self, directory: Path, worker: int, workers: int) -> None:
        self._directory = directory
        self._worker = worker
        self._workers = range(1, workers + 1)
        self._metrics = RunCounts()
        self._state: Callable[[], ServerState] = ServerState
        self._audit_before = AuditState()
        """Of the processes that had this number before."""

    @asynccontextmanager
    async def opened(self, metrics: RunMetrics, state: Callable[[], ServerState]) -> AsyncIterator[None]:
        """Answer the other workers inside this context. Continues with the counters of the last process."""
        if (before := self._read(self._worker)) is not None:
            metrics.add_json(before["counts"])
            self._audit_before = _state_of(before).audit or self._audit_before
        self._metrics, self._state = metrics, state
        path = _socket(self._directory, self._worker)
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._answer, path)
        try:
            yield
        finally:
            server.close()
            with suppress(OSError):
                self._write(self._numbers({}))

    async def scrape(self) -> Scrape:
        """The numbers of all workers."""
        others = [worker for worker in self._workers if worker != self._worker]
        answers = await asyncio.gather(*map(self._ask, others))
        numbers = {worker: found for worker in others if (found := self._read(worker)) is not None}
        own = numbers[self._worker] = self._numbers(await asyncio.to_thread(_process_values))
        with suppress(OSError):
            self._write(own)
        answered = {self._worker, *compress(others, answers)}
        counts = RunCounts()
        for found in numbers.values():
            counts.add_json(found["counts"])
        states = {worker: _state_of(found) for worker, found in numbers.items()}
        return Scrape(
            counts,
            merged_state([state for worker, state in states.items() if worker in answered], [*states.values()]),
            {worker: numbers[worker]["process"] for worker in sorted(answered & numbers.keys())},
        )

    async def _ask(self, worker: int) -> bool:
        """Let another worker write its file. False if it does not answer in time."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                reader, writer = await asyncio.open_unix_connection(_socket(self._directory, worker))
                try:
                    return await reader.read() == _ANSWER
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            logger.warning("worker %d does not answer, so its metrics are those of the last scrape", worker)
            return False

    async def _answer(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # In a thread, because the import would delay the streams of others.
            self._write(self._numbers(await asyncio.to_thread(_process_values)))
            writer.write(_ANSWER)
        except OSError:
            logger.exception("the metrics of this worker could not be written")
        finally:
            writer.close()

    def _write(self, numbers: Mapping[str, Any]) -> None:
        """Write the file. A scrape shows no counters of this worker that are not in it."""
        new = self._directory / f"{self._worker}.new"
        new.write_text(json.dumps(numbers), encoding="utf-8")
        new.replace(self._file(self._worker))

    def _numbers(self, process: ProcessValues) -> dict[str, Any]:
        state, before = self._state(), self._audit_before
        if (audit := state.audit) is not None:
            whole = AuditState(max(audit.seq, before.seq), audit.pending, audit.lost + before.lost)
            state = replace(state, audit=whole)
        return {"counts": self._metrics.to_json(), "state": asdict(state), "process": process}

    def _read(self, worker: int) -> dict[str, Any] | None:
        """The numbers in the file of a worker; None if it has not written any."""
        try:
            found: dict[str, Any] = json.loads(self._file(worker).read_bytes())
        except FileNotFoundError:
            return None
        return found

    def _file(self, worker: int) -> Path:
        return self._directory / f"{worker}.json"


def merged_state(answered: Sequence[ServerState], known: Iterable[ServerState]) -> ServerState:
    """The state of a server with several workers. `known` has also the workers that do not answer."""
    return ServerState(
        running=sum(state.running for state in answered),
        # Each worker counts the messages in the database, which wait for any of them.
        queued=max((state.queued for state in answered), default=0),
        streams=sum(state.streams for state in answered),
        degraded=any(state.degraded for state in answered),
        audit=_merged_audit(
            [state.audit for state in answered if state.audit is not None],
            [state.audit for state in known if state.audit is not None],
        ),
    )


def _merged_audit(answered: Sequence[AuditState], known: Sequence[AuditState]) -> AuditState | None:
    if not known:
        return None
    return AuditState(
        max(audit.seq for audit in known),
        sum(audit.pending for audit in answered),
        sum(audit.lost for audit in known),
    )


def _state_of(numbers: Mapping[str, Any]) -> ServerState:
    state = dict(numbers["state"])
    audit = state.pop("audit")
    return ServerState(**state, audit=None if audit is None else AuditState(**audit))


def _socket(directory: Path, worker: int) -> Path:
    return directory / f"{worker}.socket"


def _process_values() -> ProcessValues:
    # Imported on demand: prometheus_client would delay every start.
    from ai_platform_engineering.utils.a2a_common.server.metrics_page import process_values  # noqa: PLC0415

    return process_values()
