"""Reads from its checkpoints how far a run has come that another process, or an earlier start, began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import StateSnapshot

from ai_platform_engineering.compat.langgraph import (
    INTERRUPT_CHANNEL,
    MODEL_NODE,
    RESUME_CHANNEL,
    call_namespace,
    unfinished_tool_tasks,
)
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.history import unanswered_calls
from ai_platform_engineering.runs.plan import PLAN_TOOL
from ai_platform_engineering.runs.stored_progress import StoredCall, StoredProgress, StoredTurn


@dataclass(frozen=True, slots=True)
class StoredRun:
    """`has_question`: the checkpoints have the message that began the task. `interrupts` are those that are open."""

    progress: StoredProgress
    has_question: bool
    interrupts: frozenset[str]
    answers: Mapping[str, int]
    """The number of stored answers by interrupt. LangGraph stores an answer when the node that asked reads it."""


async def stored_run(graph: Graph, context_id: str, task_id: str) -> StoredRun:
    """Read the run of a task."""
    config: RunnableConfig = {"configurable": {"thread_id": context_id}}
    state = await graph.aget_state(config)
    messages: list[AnyMessage] = state.values.get("messages", [])
    place = next((place for place, message in enumerate(messages) if message.id == task_id), None)
    # A model turn may be stored although its step has not ended.
    pending = [message for task in state.tasks if task.name == MODEL_NODE for message in _messages(task.result)]
    own = [*messages[place + 1 :], *pending] if place is not None else []
    turns = [message for message in own if isinstance(message, AIMessage)]
    steps, answers = await _steps_and_answers(graph, context_id, state, own)
    return StoredRun(
        StoredProgress(
            steps=steps,
            plan=_last_plan(turns, [step.result for step in steps if isinstance(step, StoredCall)]),
            turn=turns[-1] if turns else None,
            is_over=bool(turns) and not state.next and not turns[-1].tool_calls,
        ),
        has_question=place is not None,
        interrupts=frozenset(interrupt.id for interrupt in state.interrupts),
        answers=answers,
    )


async def _steps_and_answers(
    graph: Graph, context_id: str, state: StateSnapshot, own: Sequence[AnyMessage]
) -> tuple[list[StoredCall | StoredTurn], dict[str, int]]:
    """The calls of the run in the order in which they began, the turns and calls of a delegation behind it."""
    if not isinstance(saver := graph.checkpointer, BaseCheckpointSaver):
        return [], {}
    found = await _checkpoints(saver, context_id, "")
    steps, answers = list[StoredCall | StoredTurn](), _answers(found)
    for call in _own_calls(found, state, own):
        steps.append(call)
        if found := await _checkpoints(saver, context_id, call_namespace(call.call_id)):
            steps += _agent_steps(found, call)
            answers |= _answers(found)
    return steps, answers


def _agent_steps(checkpoints: Sequence[CheckpointTuple], delegation: StoredCall) -> Iterator[StoredCall | StoredTurn]:
    """The turns of a delegated agent, behind each its finished calls, and the answer of a finished delegation."""
    stored: list[AnyMessage] = checkpoints[-1].checkpoint["channel_values"].get("messages", [])
    # A turn may be stored although its step has not ended.
    pending = [message for written in _by_task(checkpoints[-1]).values() for message in _messages(written)]
    finished = [*_finished(checkpoints, stored, delegation.call_id)]
    turns = [message for message in (*stored, *pending) if isinstance(message, AIMessage)]
    for turn in turns:
        yield StoredTurn(delegation.call_id, turn)
        ids = {call["id"] for call in turn.tool_calls}
        yield from (call for call in finished if call.call["id"] in ids)
    result = delegation.result
    # The last checkpoint of a nested graph, with the agent's answer, is not always stored.
    if result is not None and result.status != "error" and (not turns or turns[-1].tool_calls):
        yield StoredTurn(delegation.call_id, AIMessage(str(result.text), id=f"{delegation.call_id}-answer"))


def _own_calls(
    checkpoints: Sequence[CheckpointTuple], state: StateSnapshot, own: Sequence[AnyMessage]
) -> list[StoredCall]:
    finished = [*_finished(checkpoints, own, None)]
    known = {call.call_id for call in finished}
    running = [
        StoredCall(task.id, None, {"name": call.name, "args": call.args})
        for call, task in zip(unanswered_calls(own), unfinished_tool_tasks(state), strict=False)
        if task.id not in known
    ]
    return [*finished, *running]


async def _checkpoints(saver: BaseCheckpointSaver[Any], context_id: str, namespace: str) -> list[CheckpointTuple]:
    """The checkpoints of a graph, the oldest first."""
    config: RunnableConfig = {"configurable": {"thread_id": context_id, "checkpoint_ns": namespace}}
    return [found async for found in saver.alist(config)][::-1]


def _answers(checkpoints: Iterable[CheckpointTuple]) -> dict[str, int]:
    return {
        interrupt.id: len(written.get(RESUME_CHANNEL, ()))
        for found in checkpoints
        for written in _by_task(found).values()
        for interrupt in written.get(INTERRUPT_CHANNEL, ())
    }


def _finished(
    checkpoints: Iterable[CheckpointTuple], messages: Sequence[AnyMessage], parent: str | None
) -> Iterator[StoredCall]:
    """The finished calls of the turns in `messages`."""
    calls = {call["id"]: call for turn in messages if isinstance(turn, AIMessage) for call in turn.tool_calls}
    for found in checkpoints:
        for task_id, written in _by_task(found).items():
            for message in _messages(written):
                if isinstance(message, ToolMessage) and message.tool_call_id in calls:
                    yield StoredCall(task_id, parent, calls[message.tool_call_id], message)


def _by_task(checkpoint: CheckpointTuple) -> Mapping[str, Mapping[str, Any]]:
    """The values that the tasks after a checkpoint have written, by task and channel."""
    written: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for task_id, channel, value in checkpoint.pending_writes or ():
        written[task_id][channel] = value
    return written


def _messages(result: Any) -> Sequence[AnyMessage]:
    """The messages in the result of a finished task."""
    messages = result.get("messages") if isinstance(result, Mapping) else None
    return messages if isinstance(messages, list | tuple) else []


def _last_plan(turns: Sequence[AIMessage], results: Iterable[ToolMessage | None]) -> Mapping[str, Any] | None:
    """The arguments of the last call of the plan tool that succeeded."""
    done = {result.tool_call_id for result in results if result is not None and result.status != "error"}
    plans = [call for turn in turns for call in turn.tool_calls if call["name"] == PLAN_TOOL and call["id"] in done]
    return plans[-1]["args"] if plans else None
