"""An event loop in its own thread, so that the main thread can block on keyboard input or on the next frame."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

Value = TypeVar("Value")


class BackgroundLoop:
    """Runs coroutines and keeps async context managers open until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="supervisor", daemon=True)
        self._contexts: list[tuple[asyncio.Event, Future[None]]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for leave, task in reversed(self._contexts):
            self._loop.call_soon_threadsafe(leave.set)
            task.exception()
        self.submit(_cancel_others()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def submit(self, work: Coroutine[Any, Any, Value]) -> Future[Value]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def enter_context(self, context: AbstractAsyncContextManager[Value]) -> Value:
        """Enter `context` now, and exit it in the same task when the loop is closed."""
        entered: Future[Value] = Future()
        leave = asyncio.Event()

        async def hold_open() -> None:
            try:
                async with context as value:
                    entered.set_result(value)
                    await leave.wait()
            except BaseException as error:
                if entered.done():
                    raise
                entered.set_exception(error)

        self._contexts.append((leave, self.submit(hold_open())))
        return entered.result()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
