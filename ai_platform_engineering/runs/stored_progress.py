"""The progress of a run that another process began, as far as its checkpoints have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A tool call: the model's call, and its result if it has finished."""

    call_id: str
    parent_call_id: str | None
    call: Mapping[str, Any]
    result: ToolMessage | None = None


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A message of the model of a delegated agent. `delegation` is the id of the call that delegated to it."""

    delegation: str
    message: AIMessage


@dataclass(frozen=True, slots=True)
class StoredProgress:
    """`steps` are the calls in the order in which they began, and behind each delegation the turns and calls of its
    agent. `turn` is the last message of the run's own model; `is_over` is true if that was the last step of the graph.
    `plan` has the arguments of the last call of the plan tool.
    """

    steps: Sequence[StoredCall | StoredTurn] = ()
    plan: Mapping[str, Any] | None = None
    turn: AIMessage | None = None
    is_over: bool = False
