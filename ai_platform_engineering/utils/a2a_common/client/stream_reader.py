"""Reads a stream of responses in a background task, so that a timeout while waiting for a response loses none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from a2a.types.a2a_pb2 import StreamResponse

_QUEUE_SIZE: Final = 256


class StreamReader:
    """The reader of one stream. Call `aclose` after use."""

    def __init__(self, stream: AsyncIterator[StreamResponse]) -> None:
        self._stream = stream
        self._received: asyncio.Queue[StreamResponse | Exception | None] = asyncio.Queue(_QUEUE_SIZE)
        self._reading = asyncio.create_task(self._read_all())
        self._first_received = asyncio.Event()
        self.known_task_id = ""

    async def next(self, timeout: float) -> StreamResponse | None:
        """The next response, or None at the end. Raises `TimeoutError` if none comes within `timeout` seconds."""
        if self._received.empty():
            async with asyncio.timeout(timeout):
                response = await self._received.get()
        else:
            response = self._received.get_nowait()
        if isinstance(response, Exception):
            raise response
        return response

    async def task_id(self) -> str:
        """The id of the agent's task; waits for the first response if there was none yet."""
        if not self._reading.done():
            await self._first_received.wait()
        return self.known_task_id

    async def aclose(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read_all(self) -> None:
        try:
            async for response in self._stream:
                self.known_task_id = (
                    self.known_task_id
                    or response.task.id
                    or response.status_update.task_id
                    or response.artifact_update.task_id
                )
                self._first_received.set()
                await self._received.put(response)
        except Exception as error:  # raised by `next`
            await self._received.put(error)
        else:
            await self._received.put(None)
        finally:
            self._first_received.set()
            if isinstance(self._stream, AsyncGenerator):
                await self._stream.aclose()
