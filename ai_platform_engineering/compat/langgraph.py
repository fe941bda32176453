"""LangGraph: node names, namespaces, task contents and channels that it uses but does not document.

The nodes are those of LangChain's `create_agent`. A namespace is the path of a graph inside other graphs: one segment
`<node>:<task id>` per level, joined by `|` in configurations and metadata, as a tuple in the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import PregelTask, StateSnapshot

MODEL_NODE: Final = "model"
TOOLS_NODE: Final = "tools"

NODE_KEY: Final = "langgraph_node"
"""Key of a token's metadata: the node that wrote the token."""

INTERRUPT_CHANNEL: Final = "__interrupt__"
"""The channel of pending writes in which LangGraph stores an interrupt."""

RESUME_CHANNEL: Final = "__resume__"
"""The channel of pending writes in which LangGraph stores the answer to an interrupt, once the node has read it."""

_NAMESPACE_KEY: Final = "langgraph_checkpoint_ns"
_SENDS_CHANNEL: Final = "__pregel_tasks"
_BRANCH_CHANNELS: Final = "branch:to:"


class DependencyChangedError(RuntimeError):
    """An upgrade changed an undocumented part of a dependency. The text names the part and the module to adapt."""

    def __init__(self, dependency: str, change: str, module: str) -> None:
        super().__init__(f"{dependency}: {change}. Adapt ai_platform_engineering/compat/{module} to this version.")


def check_nodes(nodes: Iterable[str]) -> None:
    """Raise unless an agent's graph has exactly the nodes whose tasks are translated into events."""
    found = {*nodes} - {START, END}
    if found != {MODEL_NODE, TOOLS_NODE}:
        raise DependencyChangedError(
            "LangChain's create_agent",
            f"the graph has the nodes {sorted(found)}, expected {[MODEL_NODE, TOOLS_NODE]}; events would be lost",
            "langgraph.py",
        )


def outer_task_id(namespace: Sequence[str]) -> str | None:
    """The id of the task of the outermost graph in which a nested graph runs; None for the outermost graph itself."""
    if not namespace:
        return None
    _, separator, task_id = namespace[0].partition(":")
    if not separator:
        raise _namespace_error(namespace[0])
    return task_id


def outer_namespace(namespace: str) -> str:
    """The namespace of the graph in which the graph of a namespace is nested; empty for the outermost graph."""
    return namespace.rpartition("|")[0]


def current_namespace(config: RunnableConfig) -> list[str]:
    """The namespace of the code that runs with this configuration."""
    return str(config["configurable"]["checkpoint_ns"]).split("|")


def current_task_id(config: RunnableConfig) -> str:
    """The id of the innermost task that runs with this configuration."""
    _, separator, task_id = current_namespace(config)[-1].partition(":")
    if not separator:
        raise _namespace_error(config["configurable"]["checkpoint_ns"])
    return task_id


def is_only_task_of_step(task_path: str) -> bool:
    """Whether a task belongs to a node that runs once in a step. Tool calls are tasks that are sent to their node."""
    return task_path.startswith("~__pregel_pull")


def ends_graph(checkpoint: Checkpoint) -> bool:
    """Whether no task follows a checkpoint."""
    return not checkpoint["channel_values"].get(_SENDS_CHANNEL) and not _has_triggers(checkpoint)


def is_before_start(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint has an input that the graph has not read yet."""
    return START in checkpoint["channel_values"]


def sent_tasks(checkpoint: Checkpoint) -> int:
    """The number of tool calls that follow a checkpoint; 0 if another node runs beside them."""
    return 0 if _has_triggers(checkpoint) else len(checkpoint["channel_values"].get(_SENDS_CHANNEL) or ())


def _has_triggers(checkpoint: Checkpoint) -> bool:
    """Whether a node follows a checkpoint that runs once in the step."""
    return any(channel == START or channel.startswith(_BRANCH_CHANNELS) for channel in checkpoint["channel_values"])


def task_namespace(task: PregelTask) -> str:
    """The namespace in which a graph that this task calls stores its checkpoints."""
    return call_namespace(task.id)


def call_namespace(call_id: str) -> str:
    """The namespace in which a graph that this tool call runs stores its checkpoints."""
    return f"{TOOLS_NODE}:{call_id}"


def token_task_id(metadata: Mapping[str, Any]) -> str:
    """The id of the task that wrote a token."""
    _, separator, task_id = str(metadata[_NAMESPACE_KEY]).rpartition(":")
    if not separator:
        raise _namespace_error(metadata[_NAMESPACE_KEY])
    return task_id


def is_task_start(task: Mapping[str, Any]) -> bool:
    """Whether a part of the stream mode `tasks` is the start of a task, not its result."""
    return "triggers" in task


def tool_call_of(task_input: Any) -> Mapping[str, Any] | None:
    """The tool call in the input of a task of the tools node."""
    call = task_input[0] if isinstance(task_input, list) and task_input else task_input
    if isinstance(call, Mapping):
        call = call.get("tool_call", call)
        if isinstance(call, Mapping) and "name" in call:
            return call
    return None


def unfinished_tool_tasks(state: StateSnapshot) -> list[PregelTask]:
    """The unfinished tasks of the tools node: one per call, in the order of the calls. Their ids are our call ids."""
    return [task for task in state.tasks if task.name == TOOLS_NODE and task.result is None]


async def end_step(graph: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig) -> None:
    """End the pending step of a graph: store the results of its finished tasks, and drop the other tasks."""
    await graph.aupdate_state(config, None, as_node=END)


def _namespace_error(namespace: object) -> DependencyChangedError:
    return DependencyChangedError(
        "LangGraph", f"the checkpoint namespace {namespace!r} is not of the form <node>:<task id>", "langgraph.py"
    )
