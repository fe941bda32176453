from __future__ import annotations

import threading
from collections.abc import Iterator

import langsmith
import pytest
from langsmith.utils import get_env_var

from ai_platform_engineering.utils.tracing import trace_inline
from tests.runs.graphs import agent, events_of


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    langsmith.set_runtime_overrides(aio_to_thread=None)
    get_env_var.cache_clear()


async def threads_of_a_run() -> set[str]:
    from ai_platform_engineering.utils.llm.scripted import ScriptedChatModel, Turn

    before = {thread.name for thread in threading.enumerate()}
    events = await events_of(agent("supervisor", ScriptedChatModel(part=[Turn("Hello.")])))
    assert events
    return {thread.name for thread in threading.enumerate()} - before


async def test_a_run_stays_in_its_thread_when_nothing_is_traced() -> None:
    trace_inline()
    assert not await threads_of_a_run()


async def test_without_it_a_run_goes_through_threads() -> None:
    assert await threads_of_a_run()
