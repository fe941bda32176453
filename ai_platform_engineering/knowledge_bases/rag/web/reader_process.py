"""A process that converts pages to text, one after the other. It runs `reader_main`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_exec
from typing import Any, Final, Self

_COMMAND: Final = (sys.executable, "-P", "-X", "utf8", "-m", f"{__package__}.reader_main")
_START_SECONDS: Final = 30.0
"""Limit for the start of a process, and for the import of the libraries that a page needs."""
_MAX_RESPONSE_LENGTH: Final = 64 * 1024**2
"""Bytes. The response for a larger page may be longer."""


class ReaderError(Exception):
    """The process could not be started, died, or sent an invalid response."""


class ReaderProcess:
    """Inherits no environment variables, which may contain secrets."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        self._process = process
        self._requests = process.stdin
        self._responses = process.stdout
        self.pages = 0

    @classmethod
    async def start(cls) -> Self:
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            process = await create_subprocess_exec(*_COMMAND, env=environment, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        except OSError as error:
            raise ReaderError(f"no process can be started: {error.strerror}") from error
        reader, ready = cls(process), False
        try:
            async with asyncio.timeout(_START_SECONDS):
                await reader._responses.readexactly(1)
            ready = True
        except (EOFError, OSError) as error:
            raise ReaderError("the process did not start") from error
        finally:
            if not ready:
                await reader.end()
        return reader

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def send(self, content: bytes, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The response for a page. After an error or a cancellation, the process cannot be used again.

        Raises `TimeoutError` if the process reads the page for more than `seconds`.
        """
        self.pages += 1
        head = {**request, "seconds": seconds, "bytes": len(content)}
        try:
            async with asyncio.timeout(_START_SECONDS):
                self._requests.write(json.dumps(head).encode() + b"\n")
                await self._requests.drain()
                await self._responses.readexactly(1)
        except (EOFError, OSError) as error:
            raise ReaderError("the process died before it read the page") from error
        async with asyncio.timeout(seconds):
            return await self._response(content)

    async def _response(self, content: bytes) -> dict[str, Any]:
        try:
            self._requests.write(content)
            await self._requests.drain()
            length = int.from_bytes(await self._responses.readexactly(8), "big")
            if length > max(_MAX_RESPONSE_LENGTH, 2 * len(content)):
                raise ReaderError("the response is too long")
            response: dict[str, Any] = json.loads(await self._responses.readexactly(length))
        except (EOFError, OSError) as error:
            raise ReaderError("the process died") from error
        return response

    async def end(self) -> None:
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        if self.alive:
            self._process.kill()
