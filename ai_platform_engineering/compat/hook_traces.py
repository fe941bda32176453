"""LangChain's agents: traces of middleware hooks, prepared only where LangSmith tracing is on.

`create_agent` wraps every hook in `langsmith.traceable`, which hands work to a thread twice in each call, also while
nothing is traced: about a tenth of the CPU of a request. The module in which it looks `traceable` up is not public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain.agents import factory
from langsmith import traceable
from langsmith.utils import tracing_is_enabled

from ai_platform_engineering.compat.langgraph import DependencyChangedError

_Hook = Callable[..., Any]


def trace_hooks_on_demand() -> None:
    """The hooks of graphs that are built from now on are traced only if tracing is on when the graph is built."""
    if getattr(factory, "traceable", None) not in {traceable, _traceable_on_demand}:
        raise DependencyChangedError("LangChain", "create_agent no longer uses traceable", "hook_traces.py")
    vars(factory)["traceable"] = _traceable_on_demand


def _traceable_on_demand(**options: Any) -> Callable[[_Hook], _Hook]:
    return traceable(**options) if tracing_is_enabled() else lambda hook: hook
