"""The interface through which stores report how long their operations took. The server's metrics implement it."""

from __future__ import annotations

from typing import Final, Literal, Protocol

Store = Literal["event_log", "checkpoints"]
StoreKind = Literal["sqlite", "postgres", "mongodb", "redis"]
StoreOperation = Literal["commit", "read", "write", "trim"]


class StoreTimer(Protocol):
    def observe(self, store: Store, kind: StoreKind, operation: StoreOperation, seconds: float) -> None:
        """Count an operation, successful or not. Called on the event loop; must not block."""


class _NoTimer:
    def observe(self, store: Store, kind: StoreKind, operation: StoreOperation, seconds: float) -> None:
        pass


NO_TIMER: Final[StoreTimer] = _NoTimer()
"""For commands that serve no metrics."""
