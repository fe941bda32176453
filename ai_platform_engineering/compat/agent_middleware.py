"""LangChain's agent middleware and deepagents' delegation tool: hook names, requests, state, tool arguments.

LangChain does not document the complete list of hooks. `graphs/joined_hooks.py` calls hooks itself, so it must know
every hook: an unknown one would never be called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, PrivateStateAttr
from langchain_core.tools import BaseTool
from langgraph.managed.is_last_step import RemainingStepsManager

from ai_platform_engineering.compat.langgraph import DependencyChangedError

DELEGATION_TOOL: Final = "task"
"""The tool of deepagents' `SubAgentMiddleware`."""

AGENT_ARGUMENT: Final = "subagent_type"
"""The argument of the delegation tool that names the agent."""

RemainingSteps = Annotated[int, PrivateStateAttr, RemainingStepsManager]
"""LangGraph's `RemainingSteps`, excluded from the input and output of a graph. The manager must come last."""

MODEL_CALL_HOOK: Final = "awrap_model_call"
TOOL_CALL_HOOK: Final = "awrap_tool_call"

_SYNC_HOOKS: Final = {"wrap_model_call": MODEL_CALL_HOOK, "wrap_tool_call": TOOL_CALL_HOOK}
_NODE_HOOKS: Final = frozenset(
    f"{prefix}{when}_{what}" for prefix in ("", "a") for when in ("before", "after") for what in ("agent", "model")
)
_HOOKS: Final = frozenset({*_SYNC_HOOKS, *_SYNC_HOOKS.values(), *_NODE_HOOKS})
_ATTRIBUTES: Final = frozenset({"name", "state_schema", "tools", "trace_policy", "transformers"})


def check_hooks() -> None:
    """Raise if LangChain's middleware class has a hook that is unknown here, or lacks a known one."""
    found = {name for name in dir(AgentMiddleware) if not name.startswith("_")} - _ATTRIBUTES
    if found != _HOOKS:
        changes = [f"has the unknown hook {name}" for name in sorted(found - _HOOKS)]
        changes += [f"no longer has the hook {name}" for name in sorted(_HOOKS - found)]
        raise DependencyChangedError("LangChain", f"AgentMiddleware {' and '.join(changes)}", "agent_middleware.py")


def overrides(middleware: AgentMiddleware[Any, Any, Any], name: str) -> bool:
    return getattr(type(middleware), name) is not getattr(AgentMiddleware, name)


def unjoinable_parts(middleware: AgentMiddleware[Any, Any, Any]) -> list[str]:
    """The parts of a middleware that have no effect if only its `awrap_` hooks, state and tools are used.

    Its trace policy is not among them: the hooks of joined middleware are not traced one by one.
    """
    parts = [name for name in sorted(_NODE_HOOKS) if overrides(middleware, name)]
    parts += [
        name for name, other in _SYNC_HOOKS.items() if overrides(middleware, name) and not overrides(middleware, other)
    ]
    return [*parts, "transformers"] if middleware.transformers else parts


def overridden(request: ModelRequest[Any], **changes: Any) -> ModelRequest[Any]:
    """`request.override(**changes)`, forty times faster.

    LangChain sets every attribute of the new request with a warning that it suppresses.
    """
    changed = object.__new__(type(request))
    vars(changed).update(vars(request), **changes)
    return changed


def check_delegation_tool(tools: Iterable[BaseTool]) -> None:
    """Raise unless the delegation tool is among the tools and has the argument that names the agent."""
    tool = next((tool for tool in tools if tool.name == DELEGATION_TOOL), None)
    if tool is None or AGENT_ARGUMENT not in tool.args:
        change = f"SubAgentMiddleware has no tool {DELEGATION_TOOL!r} with the argument {AGENT_ARGUMENT!r}"
        raise DependencyChangedError("deepagents", change, "agent_middleware.py")
