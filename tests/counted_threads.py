"""Threads of an event loop that count the work they get."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class CountedThreads(ThreadPoolExecutor):
    """Takes the place of the threads of the running event loop."""

    calls = 0

    def __init__(self) -> None:
        super().__init__(2)
        asyncio.get_running_loop().set_default_executor(self)

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        return super().submit(work, *args, **kwargs)
