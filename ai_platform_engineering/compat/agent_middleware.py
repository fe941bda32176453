"""LangChain's agent middleware and deepagents' delegation tool: requests, state, tool arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

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
