from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import langsmith
import pytest

from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn
from ai_platform_engineering.utils.serving import disable_tracing_threads
from tests.runs.graphs import agent, events_of


class CountingExecutor(ThreadPoolExecutor):
    """The event loop's threads, and how often something was handed to them."""

    hops = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.hops += 1
        return super().submit(fn, *args, **kwargs)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    langsmith.set_runtime_overrides(aio_to_thread=None)


async def hops_of_a_run() -> int:
    executor = CountingExecutor(2)
    asyncio.get_running_loop().set_default_executor(executor)
    assert await events_of(agent("supervisor", ScriptedChatModel(script=[Turn("Hello.")])))
    return executor.hops


async def test_a_run_stays_in_its_thread_when_nothing_is_traced() -> None:
    disable_tracing_threads()
    assert await hops_of_a_run() == 0


async def test_without_it_a_run_goes_through_threads() -> None:
    langsmith.set_runtime_overrides(aio_to_thread=None)
    assert await hops_of_a_run() > 0
