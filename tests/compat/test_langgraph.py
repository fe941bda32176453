"""The contract of `compat/langgraph.py`: the undocumented parts of LangGraph and LangChain that it uses."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from ai_platform_engineering.compat.langgraph import (
    INTERRUPT_CHANNEL,
    MODEL_NODE,
    NODE_KEY,
    RESUME_CHANNEL,
    TOOLS_NODE,
    DependencyChangedError,
    check_nodes,
    current_namespace,
    current_task_id,
    end_step,
    ends_graph,
    is_only_task_of_step,
    is_task_start,
    outer_task_id,
    task_namespace,
    token_task_id,
    tool_call_of,
    unfinished_tool_tasks,
)
from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn

CHANGED = f"LangGraph {version('langgraph')} changed a part that compat/langgraph.py uses"
CONFIG: Any = {"configurable": {"thread_id": "t"}}
QUESTION: Any = {"messages": [HumanMessage("go")]}

namespaces: list[list[str]] = []


async def note_namespace(state: MessagesState) -> dict[str, Any]:
    namespaces.append(current_namespace(get_config()))
    return {"messages": [AIMessage("inside")]}


nested = StateGraph(MessagesState).add_node("inner", note_namespace).add_edge(START, "inner").compile()


@tool
async def delegate(name: str) -> str:
    """Calls another graph."""
    state = await nested.ainvoke({"messages": [HumanMessage(name)]})
    return str(state["messages"][-1].text)


@tool
async def ask() -> str:
    """Asks a person."""
    return str(interrupt("which?"))


def graph(*turns: Turn) -> Any:
    return create_agent(ScriptedChatModel(script=[*turns]), [delegate, ask], checkpointer=InMemorySaver())


async def parts(*turns: Turn) -> list[Any]:
    modes = ["messages", "tasks"]
    return [
        part async for part in graph(*turns).astream(QUESTION, CONFIG, stream_mode=modes, subgraphs=True, version="v2")
    ]


def tasks_of(stream: list[Any], node: str) -> list[Any]:
    return [part["data"] for part in stream if part["type"] == "tasks" and part["data"]["name"] == node]


DELEGATES = (Turn("I look.", [("delegate", {"name": "jira"})]), Turn("Done."))


def test_the_nodes_of_an_agent_are_model_and_tools() -> None:
    check_nodes(graph().nodes)


@pytest.mark.parametrize("nodes", [["model", "tool_executor"], ["model", "tools", "Guard.before_model"], ["agent"]])
def test_a_graph_with_other_nodes_is_refused(nodes: list[str]) -> None:
    with pytest.raises(DependencyChangedError, match=r"create_agent: the graph has the nodes .*compat/langgraph\.py"):
        check_nodes([START, *nodes])


async def test_a_tool_task_starts_with_its_call_and_ends_with_its_result() -> None:
    start, end = tasks_of(await parts(*DELEGATES), TOOLS_NODE)
    assert is_task_start(start), f"{CHANGED}: the start of a task has no triggers."
    assert not is_task_start(end), f"{CHANGED}: the end of a task has triggers."
    call = tool_call_of(start["input"])
    assert call is not None, f"{CHANGED}: the input of a tool task has no tool call in a known place."
    assert (call["name"], call["args"]) == ("delegate", {"name": "jira"})
    assert start["id"] == end["id"], f"{CHANGED}: the start and the end of a task have different ids."


async def test_the_namespace_of_a_nested_graph_begins_with_the_task_of_its_call() -> None:
    namespaces.clear()
    stream = await parts(*DELEGATES)
    call = tasks_of(stream, TOOLS_NODE)[0]
    inner = [part for part in stream if part["type"] == "tasks" and part["data"]["name"] == "inner"]
    assert {outer_task_id(part["ns"]) for part in inner} == {call["id"]}, (
        f"{CHANGED}: the namespace of a nested graph does not begin with the task that called it."
    )
    assert [outer_task_id(found) for found in namespaces] == [call["id"]], (
        f"{CHANGED}: the configuration's checkpoint_ns does not begin with the task that called the graph."
    )
    own = [part for part in stream if part["type"] == "tasks" and part["data"]["name"] in {MODEL_NODE, TOOLS_NODE}]
    assert {outer_task_id(part["ns"]) for part in own} == {None}, f"{CHANGED}: the outermost graph has a namespace."


async def test_a_token_has_its_node_and_its_task() -> None:
    stream = await parts(*DELEGATES)
    turns = {task["id"] for task in tasks_of(stream, MODEL_NODE)}
    tokens = [part["data"][1] for part in stream if part["type"] == "messages" and part["data"][0].type != "tool"]
    written = [metadata for metadata in tokens if metadata.get(NODE_KEY) == MODEL_NODE]
    assert written, f"{CHANGED}: the metadata of a token has no {NODE_KEY}."
    assert {token_task_id(metadata) for metadata in written} == turns, (
        f"{CHANGED}: the langgraph_checkpoint_ns of a token does not end with the id of its task."
    )


@pytest.mark.parametrize("changed", ["tools-17", "tools/17"])
def test_a_namespace_of_another_form_is_refused(changed: str) -> None:
    sentence = rf"LangGraph: the checkpoint namespace '{changed}' is not of the form .*compat/langgraph\.py"
    with pytest.raises(DependencyChangedError, match=sentence):
        outer_task_id([changed])
    with pytest.raises(DependencyChangedError, match=sentence):
        token_task_id({"langgraph_checkpoint_ns": changed})


async def test_an_interrupt_is_a_pending_write_and_ends_its_task() -> None:
    waiting = graph(Turn("", [("ask", {})]))
    modes = ["tasks"]
    stream = [part async for part in waiting.astream(QUESTION, CONFIG, stream_mode=modes, version="v2")]
    (interrupted,) = tasks_of(stream, TOOLS_NODE)[-1]["interrupts"]
    assert interrupted.keys() >= {"id", "value"}, f"{CHANGED}: an interrupt in the stream has no id or value."
    state = await waiting.aget_state(CONFIG)
    assert [pending.id for pending in state.interrupts] == [interrupted["id"]]
    stored = await waiting.checkpointer.aget_tuple(CONFIG)
    assert INTERRUPT_CHANNEL in {channel for _, channel, _ in stored.pending_writes}, (
        f"{CHANGED}: an interrupt is not a pending write of the channel {INTERRUPT_CHANNEL}."
    )
    resumed = await waiting.ainvoke(Command(resume={interrupted["id"]: "this"}), CONFIG)
    assert resumed["messages"][2].text == "this"


async def test_unfinished_tool_tasks_are_in_the_order_of_their_calls_and_can_be_dropped() -> None:
    waiting = graph(Turn("", [("ask", {}), ("delegate", {"name": "jira"}), ("ask", {})]))
    stream = [part async for part in waiting.astream(QUESTION, CONFIG, stream_mode=["tasks"], version="v2")]
    started = [task for task in tasks_of(stream, TOOLS_NODE) if is_task_start(task)]
    calls = {task["id"]: (tool_call_of(task["input"]) or {})["name"] for task in started}
    state = await waiting.aget_state(CONFIG)
    unfinished = unfinished_tool_tasks(state)
    assert [calls[task.id] for task in unfinished] == ["ask", "ask"], (
        f"{CHANGED}: the tasks of a state are not those of the calls without a result, in their order."
    )
    assert unfinished[0].id == started[0]["id"], f"{CHANGED}: the tasks of a state are in another order than the calls."
    await end_step(waiting, CONFIG)
    state = await waiting.aget_state(CONFIG)
    assert unfinished_tool_tasks(state) == [], f"{CHANGED}: an update as END does not end the pending step."
    results = [message.name for message in state.values["messages"] if message.type == "tool"]
    assert results == ["delegate"], f"{CHANGED}: an update as END does not store the results of finished tasks."


async def test_a_graph_in_a_tool_stores_its_checkpoints_under_the_task_of_its_call() -> None:
    @tool
    async def delegate_and_ask() -> str:
        """Calls a graph that asks a person."""
        builder = StateGraph(MessagesState).add_node("ask", lambda _: {"messages": [AIMessage(interrupt("which?"))]})
        await builder.add_edge(START, "ask").compile().ainvoke({"messages": []})
        return "done"

    saver = InMemorySaver()
    script = [Turn("", [("delegate_and_ask", {})])]
    waiting: Any = create_agent(ScriptedChatModel(script=script), [delegate_and_ask], checkpointer=saver)
    await waiting.ainvoke(QUESTION, CONFIG)
    (task,) = (await waiting.aget_state(CONFIG)).tasks
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": task_namespace(task)}}
    assert await saver.aget_tuple(place) is not None, (
        f"{CHANGED}: a graph that a tool calls does not store its checkpoints in the namespace <node>:<task id>."
    )


async def test_a_stored_answer_is_a_pending_write_beside_its_interrupt() -> None:
    @tool
    async def ask_and_fail() -> str:
        """Asks a person, and dies after the answer."""
        interrupt("which?")
        raise SystemError

    saver = InMemorySaver()
    script = [Turn("", [("ask_and_fail", {})])]
    waiting: Any = create_agent(ScriptedChatModel(script=script), [ask_and_fail], checkpointer=saver)
    await waiting.ainvoke(QUESTION, CONFIG)
    (interrupted,) = (await waiting.aget_state(CONFIG)).interrupts
    with pytest.raises(SystemError):
        await waiting.ainvoke(Command(resume={interrupted.id: "this"}), CONFIG, durability="sync")
    stored = await saver.aget_tuple(CONFIG)
    assert stored is not None
    written = {channel: value for _, channel, value in stored.pending_writes or ()}
    assert written.get(RESUME_CHANNEL) == ["this"], (
        f"{CHANGED}: the answer to an interrupt is not a pending write of the channel {RESUME_CHANNEL}."
    )


class PathSaver(InMemorySaver):
    """Notes the node and the path of every task that writes a result."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: dict[str, str] = {}

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.paths[task_id] = task_path
        await super().aput_writes(config, writes, task_id, task_path)


async def test_a_tool_call_is_not_the_only_task_of_its_step_and_knows_its_task() -> None:
    ids: list[str] = []

    @tool
    async def note_task() -> str:
        """Notes the task that runs it."""
        ids.append(current_task_id(get_config()))
        return "noted"

    saver = PathSaver()
    script = [Turn("", [("note_task", {})]), Turn("Done.")]
    graph: Any = create_agent(ScriptedChatModel(script=script), [note_task], checkpointer=saver)
    modes = ["tasks"]
    stream = [
        part async for part in graph.astream(QUESTION, CONFIG, stream_mode=modes, version="v2", durability="sync")
    ]
    (tool_task,) = {task["id"] for task in tasks_of(stream, TOOLS_NODE)}
    assert ids == [tool_task], f"{CHANGED}: the checkpoint_ns of a tool call does not end with the id of its task."
    assert not is_only_task_of_step(saver.paths[tool_task]), f"{CHANGED}: the path of a sent task has another form."
    assert all(is_only_task_of_step(saver.paths[task["id"]]) for task in tasks_of(stream, MODEL_NODE)), (
        f"{CHANGED}: the path of a node's own task has another form."
    )
    endings = [ends_graph(found.checkpoint) async for found in saver.alist(CONFIG)]
    assert endings == [True, *[False] * (len(endings) - 1)], f"{CHANGED}: tasks have other channels in a checkpoint."
