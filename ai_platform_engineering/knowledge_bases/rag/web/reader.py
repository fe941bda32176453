"""A process that reads pages, one after the other; `apart_main` is what runs in it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_exec
from typing import Any, Final, Self

_COMMAND: Final = (sys.executable, "-P", "-X", "utf8", "-m", f"{__package__}.apart_main")
_START_SECONDS: Final = 30.0
_MAX_ANSWER_LENGTH: Final = 64 * 1024**2
"""Bytes, where the page itself is not larger still."""


class ReaderError(Exception):
    """The process could not be started, has died, or does not speak as it should."""


class Reader:
    """Has none of the variables of this process."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        self._process = process
        self._pages = process.stdin
        self._answers = process.stdout
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
                await reader._answers.readexactly(1)
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

    async def ask(self, content: bytes, task: dict[str, Any]) -> dict[str, Any]:
        """What the process says of a page. Not to be asked again if this fails or is canceled."""
        self.pages += 1
        try:
            self._pages.write(json.dumps({**task, "bytes": len(content)}).encode() + b"\n")
            self._pages.write(content)
            await self._pages.drain()
            length = int.from_bytes(await self._answers.readexactly(8), "big")
            if length > max(_MAX_ANSWER_LENGTH, 2 * len(content)):
                raise ReaderError("the answer is too long")
            answer: dict[str, Any] = json.loads(await self._answers.readexactly(length))
        except (EOFError, OSError) as error:
            raise ReaderError("the process died") from error
        return answer

    async def end(self) -> None:
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        if self.alive:
            self._process.kill()
