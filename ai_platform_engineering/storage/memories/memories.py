"""The memories of all owners, over a store that may fail.

While the store cannot be used, every operation fails at once, so that no run waits for it. The store is opened again in
the background, with a growing delay.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from ai_platform_engineering.storage.memories.memory import (
    MAX_MEMORIES,
    MemoriesFullError,
    MemoriesUnavailableError,
    Memory,
    UnknownMemoryError,
)
from ai_platform_engineering.storage.servers.errors import StoreError
from ai_platform_engineering.utils.background_tasks import stop_tasks

logger = logging.getLogger(__name__)

T = TypeVar("T")

_OPERATION_SECONDS: Final = 5.0
_EXPIRY_OPERATION_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 2.0
_PING_SECONDS: Final = 5.0
_MIN_REOPEN_SECONDS: Final = 0.25
_MAX_REOPEN_SECONDS: Final = 5.0
_MIN_EXPIRY_SECONDS: Final = 0.5
_MAX_EXPIRY_SECONDS: Final = 3600.0


class MemoryStore(Protocol):
    """Stores memories under the keys of their owners. All methods raise `StoreError`."""

    async def ping(self) -> None: ...

    async def read(self, owner: str) -> Sequence[Memory]:
        """The memories of an owner, in any order. If there are more than the maximum, some may be missing."""

    async def put(self, owner: str, memory: Memory) -> None: ...

    async def delete(self, owner: str, ids: Collection[str]) -> None: ...

    async def delete_older(self, created_before: datetime) -> None:
        """Delete memories of all owners."""


@dataclass(frozen=True, slots=True)
class MemoryStoreAddress:
    """Which store to open, and how. `place` has no credentials."""

    kind: str
    place: str
    opened: Callable[[], AbstractAsyncContextManager[MemoryStore]]

    def problem(self, error: StoreError) -> str:
        """A sentence for people who operate the server."""
        return f"{self.kind} at {self.place} cannot be used to store memories: {error}. {error.way_out}".rstrip()


class Memories:
    def __init__(self, address: MemoryStoreAddress, ttl_minutes: float = 0.0) -> None:
        self._address = address
        self._ttl = timedelta(minutes=ttl_minutes)
        self._store: MemoryStore | None = None
        self._stack = AsyncExitStack()
        self._reason = "it is not open"
        self._failed = asyncio.Event()
        self._attempts: set[asyncio.Future[Any]] = set()
        # Counting and adding the memories of an owner is one step.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, address: MemoryStoreAddress, ttl_minutes: float = 0.0, *, required: bool = False
    ) -> AsyncIterator[Memories]:
        """A store that cannot be opened now is opened later; with `required`, it raises `MemoriesUnavailableError`."""
        memories = cls(address, ttl_minutes)
        try:
            memories._store = await memories._stack.enter_async_context(address.opened())
        except StoreError as error:
            if required:
                raise MemoriesUnavailableError(address.problem(error)) from None
            memories._note_failure(error)
        watching = asyncio.create_task(memories._watch(), name="memory-store")
        try:
            yield memories
        finally:
            await stop_tasks(watching)
            await memories._close()

    @property
    def problem(self) -> str | None:
        """Why memories cannot be used now, without addresses; None if they can."""
        if self._store is not None:
            return None
        return f"Memories cannot be used, because {self._address.kind} cannot be used: {self._reason}."

    async def remember(self, owner: str, text: str) -> Memory:
        """Store a text. A text that is already stored stays as it is."""
        memory = Memory.new(text, datetime.now(UTC))
        lock = self._locks.setdefault(owner, asyncio.Lock())
        async with lock:
            known = await self.list_all(owner)
            if existing := _find(known, memory.id):
                return existing
            if len(known) >= MAX_MEMORIES:
                raise MemoriesFullError
            added = memory.after(known[0]) if known else memory
            await self._run(lambda store: store.put(owner, added))
        return added

    async def list_all(self, owner: str) -> tuple[Memory, ...]:
        """The memories of an owner, the newest first."""
        found = await self._run(lambda store: store.read(owner))
        oldest = datetime.now(UTC) - self._ttl
        current = [memory for memory in found if not self._ttl or memory.created > oldest]
        return tuple(sorted(current, key=lambda memory: (memory.created, memory.id), reverse=True))

    async def forget(self, owner: str, memory_id: str) -> Memory:
        """Delete a memory and return it."""
        memory = _find(await self.list_all(owner), memory_id)
        if memory is None:
            raise UnknownMemoryError(memory_id)
        await self._delete(owner, [memory.id])
        return memory

    async def forget_all(self, owner: str) -> int:
        """Delete all memories of an owner and return their number."""
        count = 0
        # A read returns a bounded number of memories.
        while found := await self._run(lambda store: store.read(owner)):
            await self._delete(owner, [memory.id for memory in found])
            count += len(found)
        return count

    async def ping(self) -> None:
        await self._run(lambda store: store.ping())

    async def _delete(self, owner: str, ids: Collection[str]) -> None:
        await self._run(lambda store: store.delete(owner, ids))

    async def _expire(self) -> None:
        oldest = datetime.now(UTC) - self._ttl
        await self._run(lambda store: store.delete_older(oldest), _EXPIRY_OPERATION_SECONDS)

    async def _run(self, operation: Callable[[MemoryStore], Awaitable[T]], seconds: float = _OPERATION_SECONDS) -> T:
        store = self._store
        if store is None:
            raise MemoriesUnavailableError(self.problem)
        # The operation goes on if the caller is cancelled: LangGraph's stores would leave a transaction open.
        attempt = asyncio.ensure_future(operation(store))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._end_attempt)
        await asyncio.wait({attempt}, timeout=seconds)
        if not attempt.done():
            attempt.cancel()
            failure = StoreError(f"it did not answer within {seconds:g} seconds")
        else:
            try:
                return attempt.result()
            except StoreError as error:
                failure = error
            except Exception as error:  # a run must not fail, whatever a driver raises
                logger.exception("memories: an operation failed")
                failure = StoreError(type(error).__name__)
        self._fail(store, failure)
        raise MemoriesUnavailableError(self.problem)

    def _end_attempt(self, attempt: asyncio.Future[Any]) -> None:
        self._attempts.discard(attempt)
        if not attempt.cancelled():
            attempt.exception()  # that of a cancelled caller is not reported

    def _fail(self, store: MemoryStore, error: StoreError) -> None:
        """Stop using the store, unless that has happened already."""
        if self._store is store:
            self._store = None
            self._failed.set()
            self._note_failure(error)

    def _note_failure(self, error: StoreError) -> None:
        logger.warning("MEMORIES CANNOT BE USED. %s Runs continue without them.", self._address.problem(error))
        self._reason = str(error)

    async def _close(self) -> None:
        if self._attempts:
            await asyncio.wait({*self._attempts}, timeout=_CLOSE_SECONDS)
        with suppress(Exception):  # of a server that is gone
            await self._stack.aclose()

    async def _watch(self) -> None:
        delay, next_expiry = _MIN_REOPEN_SECONDS, 0.0
        while True:
            if self._store is None:
                await asyncio.sleep(delay)
                delay = min(2 * delay, _MAX_REOPEN_SECONDS)
                await self._reopen()
                continue
            with suppress(MemoriesUnavailableError):
                if self._ttl and time.monotonic() >= next_expiry:
                    await self._expire()
                    next_expiry = time.monotonic() + self._expiry_seconds
                if await self._stayed_open(min(_PING_SECONDS, self._expiry_seconds) if self._ttl else _PING_SECONDS):
                    await self.ping()
                    delay = _MIN_REOPEN_SECONDS

    @property
    def _expiry_seconds(self) -> float:
        """Seconds between two deletions of expired memories."""
        return min(max(self._ttl.total_seconds() / 4, _MIN_EXPIRY_SECONDS), _MAX_EXPIRY_SECONDS)

    async def _stayed_open(self, seconds: float) -> bool:
        self._failed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._failed.wait()
        return self._store is not None

    async def _reopen(self) -> None:
        await self._close()
        self._stack = AsyncExitStack()
        try:
            store = await self._stack.enter_async_context(self._address.opened())
        except Exception as error:  # the next attempt may succeed, whatever it was
            self._reason = str(error) if isinstance(error, StoreError) else type(error).__name__
        else:
            self._store = store
            logger.warning("%s can be used again; so can memories", self._address.kind)


def _find(memories: Sequence[Memory], memory_id: str) -> Memory | None:
    return next((memory for memory in memories if memory.id == memory_id), None)
