"""Names the run that writes a checkpoint, so that a store can refuse the writes of a run that was taken over.

The keys begin with two underscores: LangGraph passes them to the checkpointer, but does not store them as metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from langchain_core.runnables import RunnableConfig

_TASK: Final = "__run_task"
_EPOCH: Final = "__run_epoch"


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
