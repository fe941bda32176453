"""The contract of `compat/hook_traces.py`: where LangChain traces the hooks of middleware."""

from __future__ import annotations

import pytest
from langchain.agents import factory
from langsmith import tracing_context

from ai_platform_engineering.compat.hook_traces import trace_hooks_on_demand
from ai_platform_engineering.compat.langgraph import DependencyChangedError
from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn
from tests.counted_threads import CountedThreads
from tests.runs.graphs import agent, events_of


async def hops_of_a_run() -> int:
    threads = CountedThreads()
    assert await events_of(agent("supervisor", ScriptedChatModel(script=[Turn("Hello.")])))
    return threads.calls


async def test_a_run_stays_in_its_thread_while_nothing_is_traced() -> None:
    assert await hops_of_a_run() == 0


async def test_hooks_are_traced_while_tracing_is_on() -> None:
    with tracing_context(enabled="local"):
        assert await hops_of_a_run() > 0


def test_another_way_of_tracing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(factory, "traceable")
    with pytest.raises(DependencyChangedError, match=r"create_agent no longer uses traceable\. .*hook_traces\.py"):
        trace_hooks_on_demand()
