"""Fencing: a process that was asleep while another claimed its run must write no checkpoints of that run.

The config of a run names its task and the epoch of its claim. A store in the database of the event log checks them in
the transaction of the write; other stores check them just before the write.

The keys begin with two underscores: LangGraph passes them to the checkpointer, but does not store them as metadata.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from langchain_core.runnables import RunnableConfig

from ai_platform_engineering.storage.checkpoints.memory_saver import thread_of
from ai_platform_engineering.storage.event_log.event_log import SupersededError, UnknownTaskError
from ai_platform_engineering.storage.servers.errors import StoreError
from ai_platform_engineering.utils.errors import ReadableError

_TASK: Final = "__run_task"
_EPOCH: Final = "__run_epoch"

Fence = Callable[[str, int], Awaitable[None]]
"""Gets a task and an epoch, and raises `SupersededError` if the run of the task was claimed since."""


@dataclass(frozen=True, slots=True)
class FencedRun:
    """The task of a run, and the epoch of the claim with which it may write."""

    task_id: str
    epoch: int

    @classmethod
    def of(cls, config: RunnableConfig) -> Self | None:
        """The run that writes with this configuration; None if it was not claimed."""
        configurable = config.get("configurable", {})
        return cls(configurable[_TASK], configurable[_EPOCH]) if _EPOCH in configurable else None

    def configurable(self) -> dict[str, Any]:
        return {_TASK: self.task_id, _EPOCH: self.epoch}


class RunClaims:
    """The claims of the runs that last wrote to the conversations of a store.

    A store that checks claims itself does so in the transaction of its write.
    """

    def __init__(self, fence: Fence | None, *, is_checked_by_store: bool) -> None:
        self._fence = fence
        self._is_checked_by_store = is_checked_by_store
        self._runs: dict[str, FencedRun] = {}

    async def check(self, config: RunnableConfig) -> None:
        """Raise `SupersededError` before a write if another process has claimed its run."""
        run = FencedRun.of(config)
        if run is not None and self._fence is not None:
            self._runs[thread_of(config)] = run
            if not self._is_checked_by_store:
                await self._fence(run.task_id, run.epoch)

    async def is_superseded(self, thread_id: str) -> bool:
        """Whether another process has claimed the run that last wrote to this conversation."""
        run = self._runs.get(thread_id)
        if run is None or self._fence is None:
            return False
        try:
            await self._fence(run.task_id, run.epoch)
        except SupersededError:
            return True
        except UnknownTaskError:
            return False
        except ReadableError as error:  # the event log is away, too
            raise StoreError(str(error).rstrip(".")) from None
        return False

    def drop(self, thread_id: str) -> None:
        self._runs.pop(thread_id, None)
