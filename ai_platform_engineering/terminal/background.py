"""An event loop in a thread of its own, so that the terminal's thread may wait for a person or for the next frame."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

Value = TypeVar("Value")


class Background:
    """Runs coroutines, and holds contexts open, until it is left."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="supervisor", daemon=True)
        self._held: list[tuple[asyncio.Event, Future[None]]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for leave, holding in reversed(self._held):
            self._loop.call_soon_threadsafe(leave.set)
            holding.exception()
        self.start(_cancel_others()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, Value]) -> Future[Value]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def hold(self, context: AbstractAsyncContextManager[Value]) -> Value:
        """Enter `context`; it is left, by the same task, when this is."""
        entered: Future[Value] = Future()
        leave = asyncio.Event()

        async def holding() -> None:
            try:
                async with context as value:
                    entered.set_result(value)
                    await leave.wait()
            except BaseException as error:
                if entered.done():
                    raise
                entered.set_exception(error)

        self._held.append((leave, self.start(holding())))
        return entered.result()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
