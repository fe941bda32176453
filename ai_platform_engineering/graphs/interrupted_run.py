"""Completes the stored conversation of a run that ended without an answer, so that the next turn can use it.

Finished calls keep their results. Each unfinished call gets a result that says that its outcome is unknown. If the
process was killed, the checkpointer has nothing of the run: then the question and the shown ending are added.
"""

from __future__ import annotations

from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from ai_platform_engineering.compat.langgraph import MODEL_NODE, TOOLS_NODE, end_step, unfinished_tool_tasks
from ai_platform_engineering.events import InputRequired
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.history import OUTCOME_UNKNOWN, unanswered_calls
from ai_platform_engineering.graphs.tool_call_blocks import MessageCall
from ai_platform_engineering.runs.outcomes import InterruptedRun, Outcomes, outcomes_of, tool_names

_WAITED: Final = "This call was ended while it waited for a person's answer. What it waited for was not done."


async def complete_conversation(graph: Graph, run: InterruptedRun) -> None:
    if not isinstance(graph.checkpointer, BaseCheckpointSaver) or not {MODEL_NODE, TOOLS_NODE} <= graph.nodes.keys():
        return
    config: RunnableConfig = {"configurable": {"thread_id": run.context_id}}
    state = await graph.aget_state(config)
    messages: list[AnyMessage] = state.values.get("messages", [])
    # A run that waited for a form had no call in flight.
    waited = bool(run.events) and isinstance(run.events[-1], InputRequired)
    interrupted = [
        _unfinished(call, outcomes_of(run.events, within=task.id), waited=waited)
        for call, task in zip(unanswered_calls(messages), unfinished_tool_tasks(state), strict=False)
    ]
    # All tasks of the step may have finished before the process was killed.
    if state.tasks:
        await end_step(graph, config)
    if interrupted:
        await graph.aupdate_state(config, {"messages": interrupted}, as_node=TOOLS_NODE)
    if run.question and all(message.id != run.task_id for message in messages):
        added = [HumanMessage(run.question, id=run.task_id), AIMessage(run.ending)]
        await graph.aupdate_state(config, {"messages": added}, as_node=MODEL_NODE)


def _unfinished(call: MessageCall, inside: Outcomes, *, waited: bool) -> ToolMessage:
    parts = [_WAITED if waited else OUTCOME_UNKNOWN]
    if inside.completed:
        parts.append(f"It had completed: {tool_names(inside.completed)}.")
    if inside.unknown:
        parts.append(f"In flight when it was interrupted: {tool_names(inside.unknown)}.")
    return ToolMessage(" ".join(parts), name=call.name, tool_call_id=call.id, status="error")
