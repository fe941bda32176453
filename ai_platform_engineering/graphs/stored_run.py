"""Reads from its checkpoints how far a run has come that another process, or an earlier start, began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL, RESUME_CHANNEL, call_namespace
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.runs.plan import PLAN_TOOL
from ai_platform_engineering.runs.translation import StoredProgress


@dataclass(frozen=True, slots=True)
class StoredRun:
    """`has_question`: the checkpoints have the message that began the task. `interrupts` are those that are open."""

    progress: StoredProgress
    has_question: bool
    interrupts: frozenset[str]
    answers: Mapping[str, int]
    """The number of stored answers by interrupt. LangGraph stores an answer when the node that asked reads it."""


@dataclass(slots=True)
class _Writes:
    """What the tasks of a conversation have written so far."""

    results: dict[str, ToolMessage] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)

    def add(self, pending: Iterable[tuple[str, str, Any]]) -> None:
        by_task: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for task_id, channel, value in pending:
            by_task[task_id][channel] = value
        for task_id, written in by_task.items():
            messages = written.get("messages")
            for message in messages if isinstance(messages, list | tuple) else [messages]:
                if isinstance(message, ToolMessage):
                    self.results[task_id] = message
            for interrupt in written.get(INTERRUPT_CHANNEL, ()):
                self.answers.setdefault(interrupt.id, len(written.get(RESUME_CHANNEL, ())))


async def stored_run(graph: Graph, context_id: str, task_id: str, delegations: Iterable[str]) -> StoredRun:
    """Read the run of a task. `delegations` are the call ids of its delegations, whose graphs have checkpoints too."""
    config: RunnableConfig = {"configurable": {"thread_id": context_id}}
    state = await graph.aget_state(config)
    messages: list[AnyMessage] = state.values.get("messages", [])
    place = next((place for place, message in enumerate(messages) if message.id == task_id), None)
    writes = await _writes(graph, context_id, ["", *map(call_namespace, delegations)])
    own = messages[place + 1 :] if place is not None else []
    results = {**{message.tool_call_id: message for message in own if isinstance(message, ToolMessage)}}
    results |= {message.tool_call_id: message for message in writes.results.values()}
    turns = [message for message in own if isinstance(message, AIMessage)]
    return StoredRun(
        StoredProgress(
            results=writes.results,
            plan=_last_plan(turns, results),
            turn=turns[-1] if turns else None,
            is_over=bool(turns) and not state.next,
        ),
        has_question=place is not None,
        interrupts=frozenset(interrupt.id for interrupt in state.interrupts),
        answers=writes.answers,
    )


async def _writes(graph: Graph, context_id: str, namespaces: Iterable[str]) -> _Writes:
    writes = _Writes()
    saver = graph.checkpointer
    if isinstance(saver, BaseCheckpointSaver):
        for namespace in namespaces:
            place = {"thread_id": context_id, "checkpoint_ns": namespace}
            # The newest checkpoint comes first.
            async for found in saver.alist({"configurable": place}):
                writes.add(found.pending_writes or ())
    return writes


def _last_plan(turns: Sequence[AIMessage], results: Mapping[str, ToolMessage]) -> Mapping[str, Any] | None:
    """The arguments of the last call of the plan tool that succeeded."""
    calls = [call for turn in turns for call in turn.tool_calls if call["name"] == PLAN_TOOL]
    done = [call for call in calls if (found := results.get(call["id"] or "")) and found.status != "error"]
    return done[-1]["args"] if done else None
