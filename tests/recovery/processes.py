"""Commands that are killed and started again in the same place."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from tests.servers import CommandLine


class Restartable:
    """`platform-engineer <arguments> --port <port>`, which can be ended and started again while it is in use."""

    def __init__(self, arguments: list[str], port: int, environ: Mapping[str, str]) -> None:
        self.port = port
        self.data_dir = environ["DATA_DIR"]
        self.url = f"http://127.0.0.1:{port}"
        self.output: list[str] = []
        self._arguments = [*arguments, "--port", str(port)]
        self._environ = environ
        self._process: CommandLine | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.send(signal.SIGCONT)
            await self._process.stop()
        if error is not None:
            error.add_note("".join(self.output[-200:]))

    @property
    def runs(self) -> bool:
        return self._process is not None

    async def start(self) -> None:
        process = CommandLine(self._arguments, self._environ, output=self.output)
        await process.__aenter__()
        self._process = process

    def send(self, number: signal.Signals) -> None:
        """Send a signal that the process survives."""
        assert self._process is not None
        assert self._process.process is not None
        self._process.process.send_signal(number)

    async def kill(self) -> None:
        assert await self._stop(signal.SIGKILL) == -signal.SIGKILL

    async def terminate(self) -> None:
        """The process ends in order."""
        assert await self._stop(signal.SIGTERM) == 0

    async def restart(self) -> None:
        await self.kill()
        await self.start()

    async def _stop(self, number: signal.Signals) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        return await process.stop(number)
