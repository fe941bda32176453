"""The conversation of a run that ended without an answer, completed for the next turn.

A call that finished keeps its result. One that did not gets a result that says so: its outcome is unknown. Of a run
whose process was killed the checkpointer has nothing; then the question and the end that people were shown are added.
"""

from __future__ import annotations

from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END

from ai_platform_engineering.events import InputRequired
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.history import OUTCOME_UNKNOWN, unanswered
from ai_platform_engineering.graphs.tool_call_blocks import Call
from ai_platform_engineering.runs.outcomes import InterruptedRun, Outcomes, outcomes_of, tool_names

_MODEL_NODE: Final = "model"
_TOOLS_NODE: Final = "tools"
_WAITED: Final = "This call was ended while it waited for a person's answer. What it waited for was not done."


async def complete_conversation(graph: Graph, run: InterruptedRun) -> None:
    if not isinstance(graph.checkpointer, BaseCheckpointSaver) or not {_MODEL_NODE, _TOOLS_NODE} <= graph.nodes.keys():
        return
    config: RunnableConfig = {"configurable": {"thread_id": run.context_id}}
    state = await graph.aget_state(config)
    messages: list[AnyMessage] = state.values.get("messages", [])
    # LangGraph starts one task for each call, in the order of the calls; its id is the call id of our events.
    tasks = [task for task in state.tasks if task.name == _TOOLS_NODE and task.result is None]
    # A run that asked a person stood still: none of its calls was under way.
    waited = bool(run.events) and isinstance(run.events[-1], InputRequired)
    interrupted = [
        _unfinished(call, outcomes_of(run.events, within=task.id), waited=waited)
        for call, task in zip(unanswered(messages), tasks, strict=False)
    ]
    if state.next:
        # Stores the results of the calls that finished beside these, and drops the others.
        await graph.aupdate_state(config, None, as_node=END)
    if interrupted:
        await graph.aupdate_state(config, {"messages": interrupted}, as_node=_TOOLS_NODE)
    if run.question and all(message.id != run.task_id for message in messages):
        told = [HumanMessage(run.question, id=run.task_id), AIMessage(run.ending)]
        await graph.aupdate_state(config, {"messages": told}, as_node=_MODEL_NODE)


def _unfinished(call: Call, inside: Outcomes, *, waited: bool) -> ToolMessage:
    parts = [_WAITED if waited else OUTCOME_UNKNOWN]
    if inside.completed:
        parts.append(f"It had completed: {tool_names(inside.completed)}.")
    if inside.unknown:
        parts.append(f"In flight when it was interrupted: {tool_names(inside.unknown)}.")
    return ToolMessage(" ".join(parts), name=call.name, tool_call_id=call.id, status="error")
