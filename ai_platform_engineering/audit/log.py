"""The audit log: takes facts from a running process and writes them to a store in a background thread.

`record` never waits. `record_durably` waits until the fact is stored: for calls that must not be made unrecorded. While
the store fails, facts are kept in memory up to a limit; an entry then states how many were lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Condition, Thread
from typing import Final, Protocol

from ai_platform_engineering.audit.record import AuditFact, Head
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

MAX_PENDING: Final = 10_000
_BATCH_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 10.0
_PRUNE_SECONDS: Final = 24 * 3600.0
_CLOSE_SECONDS: Final = 5.0
_TOO_SLOW: Final = "The audit record is written too slowly."


class AuditUnavailableError(ReadableError):
    """An entry cannot be stored. The text says why."""


class AuditStore(Protocol):
    """The methods block on I/O and raise `AuditUnavailableError`. Several threads may call them."""

    def append(self, facts: Sequence[AuditFact]) -> Head:
        """Store the facts as entries, all or none, and wait until they are on disk."""

    def prune(self) -> None:
        """Delete entries that are older than the retention."""

    def close(self) -> None: ...


class Audit(Protocol):
    """Records what happens in this process."""

    def record(self, fact: AuditFact) -> None:
        """Store a fact soon. Never waits and never raises."""

    async def record_durably(self, fact: AuditFact) -> None:
        """Store a fact before the return. Raises `AuditUnavailableError` if what it announces must not happen."""


class _NoAudit:
    def record(self, fact: AuditFact) -> None:
        pass

    async def record_durably(self, fact: AuditFact) -> None:
        pass


NO_AUDIT: Final[Audit] = _NoAudit()


@dataclass(slots=True, eq=False)
class _Pending:
    fact: AuditFact
    stored: Future[None] | None = None


@dataclass(frozen=True, slots=True)
class AuditState:
    """The numbers of `/metrics`. `seq` is that of the last entry this process has written."""

    seq: int = 0
    pending: int = 0
    lost: int = 0


@dataclass(slots=True, eq=False)
class AuditLog:
    """`required`: what `record_durably` announces must not happen while the store fails. The thread starts with the
    first fact."""

    store: AuditStore
    required: bool = False
    prunes: bool = False
    max_pending: int = MAX_PENDING
    retry_seconds: float = _RETRY_SECONDS
    problem: str | None = None
    """Why facts cannot be stored at the moment."""
    _pending: deque[_Pending] = field(default_factory=deque)
    _changed: Condition = field(default_factory=Condition)
    _thread: Thread | None = None
    _closing: bool = False
    _is_urgent: bool = False
    _unreported: int = 0
    """Lost facts that no entry states yet."""
    _lost: int = 0
    _seq: int = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Old entries are deleted inside this context. Pending facts are written at its end."""
        pruning = asyncio.create_task(self._prune(), name="audit-pruning") if self.prunes else None
        try:
            yield
        finally:
            if pruning is not None:
                pruning.cancel()
                await asyncio.gather(pruning, return_exceptions=True)
            await asyncio.to_thread(self.close)

    def record(self, fact: AuditFact) -> None:
        self._put(_Pending(fact))

    async def record_durably(self, fact: AuditFact) -> None:
        if self.problem is not None and not self.required:
            self.record(fact)
            return
        stored: Future[None] = Future()
        self._put(_Pending(fact, stored))
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await asyncio.wrap_future(stored)
        except AuditUnavailableError:
            if self.required:
                raise
        except TimeoutError:
            if self.required:
                self.record(_denied(fact))
                raise AuditUnavailableError(f"The audit record did not answer within {_WAIT_SECONDS:.0f} s.") from None

    def state(self) -> AuditState:
        return AuditState(self._seq, len(self._pending), self._lost)

    def close(self) -> None:
        """Write the pending facts, with one attempt, and close the store."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)
            self._thread = None
        if unstored := len(self._pending) + self._unreported:
            logger.error("%d entries of the audit record are lost: %s", unstored, self.problem)
        self.store.close()

    def _put(self, pending: _Pending) -> None:
        with self._changed:
            if len(self._pending) >= self.max_pending:
                self._lost += 1
                self._unreported += 1
                if pending.stored is not None:
                    pending.stored.set_exception(AuditUnavailableError(self.problem or _TOO_SLOW))
                return
            self._pending.append(pending)
            if self._thread is None:
                self._closing = False
                self._thread = Thread(target=self._run, name="audit", daemon=True)
                self._thread.start()
            # While the store fails, only a fact that is waited for is a reason to try again at once.
            self._is_urgent |= pending.stored is not None
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or bool(self._pending))
                if not self._pending:
                    return
                # A commit costs much more than an entry.
                self._changed.wait_for(lambda: self._closing or self._is_urgent, _BATCH_SECONDS)
                batch = [*self._pending]
                self._is_urgent = False
            is_stored = self._write(batch)
            with self._changed:
                if self._closing and (not is_stored or not self._pending):
                    return
                if not is_stored:
                    self._changed.wait_for(lambda: self._closing or self._is_urgent, self.retry_seconds)

    def _write(self, batch: Sequence[_Pending]) -> bool:
        """Store the facts, and those lost before; False if that fails."""
        unreported = self._unreported
        facts = [pending.fact for pending in batch]
        if unreported:
            facts.append(AuditFact("entries_lost", count=unreported, reason=self.problem or ""))
        try:
            head = self.store.append(facts)
        except AuditUnavailableError as error:
            self._failed(batch, error)
            return False
        with self._changed:
            for _ in batch:
                self._pending.popleft()
            self._unreported -= unreported
            self._seq = head.seq
            if self.problem is not None:
                logger.warning("The audit record can be written again.")
                self.problem = None
        for pending in batch:
            if pending.stored is not None:
                with suppress(InvalidStateError):  # it was cancelled
                    pending.stored.set_result(None)
        return True

    def _failed(self, batch: Sequence[_Pending], error: AuditUnavailableError) -> None:
        with self._changed:
            if self.problem is None:
                logger.warning("THE AUDIT RECORD CANNOT BE WRITTEN. %s Entries are in memory meanwhile.", error)
            self.problem = str(error)
            for pending in batch:
                if pending.stored is not None:
                    if self.required:
                        pending.fact = _denied(pending.fact)
                    with suppress(InvalidStateError):
                        pending.stored.set_exception(AuditUnavailableError(str(error)))
                    pending.stored = None

    async def _prune(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.store.prune)
            except AuditUnavailableError as error:
                logger.warning("Old entries were not deleted. %s", error)
            await asyncio.sleep(_PRUNE_SECONDS)


def _denied(fact: AuditFact) -> AuditFact:
    return replace(fact, kind="denied", reason="the audit record was unavailable")
