"""LangChain's agents: traces of middleware hooks, prepared only while LangSmith tracing is on.

`create_agent` wraps every hook in `langsmith.traceable`, which hands work to a thread twice in each call, also while
nothing is traced: about a tenth of the CPU of a request. The module in which it looks `traceable` up is not public.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from langchain.agents import factory
from langsmith import traceable
from langsmith.utils import tracing_is_enabled

from ai_platform_engineering.compat.langgraph import DependencyChangedError

_Hook = Callable[..., Any]


def trace_hooks_on_demand() -> None:
    """Graphs that are built from now on prepare no traces of hooks while tracing is off."""
    if getattr(factory, "traceable", None) not in {traceable, _traceable_on_demand}:
        raise DependencyChangedError("LangChain", "create_agent no longer uses traceable", "hook_traces.py")
    vars(factory)["traceable"] = _traceable_on_demand


def _traceable_on_demand(**options: Any) -> Callable[[_Hook], _Hook]:
    def decorate(hook: _Hook) -> _Hook:
        traced: _Hook = traceable(**options)(hook)
        if not inspect.iscoroutinefunction(hook):
            return traced

        @functools.wraps(hook)
        async def traced_on_demand(*args: Any, **kwargs: Any) -> Any:
            return await (traced if tracing_is_enabled() else hook)(*args, **kwargs)

        return traced_on_demand

    return decorate
