"""Real servers for tests: an app on a loopback port in this process, or the command line in a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, StreamResponse
from starlette.types import ASGIApp

from ai_platform_engineering.events import Event
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.wire import Decoder
from ai_platform_engineering.utils.serving import KEEP_ALIVE_SECONDS, listen
from tests.event_loops import abort_connections
from tests.forks import MEASURED

ROOT = Path(__file__).resolve().parent.parent
Completed = subprocess.CompletedProcess[str]
Command = Callable[..., Completed]
START_SECONDS = 90
"""Much longer than a start takes, for machines that are busy with other things."""
READY = re.compile(r" is ready at (http://\S+)")
KEYWORDS_ALONE = {"EMBEDDINGS_PROVIDER": "none"}
"""For servers whose test does not choose: after the first search, the vectors of the product's documentation would keep
all cores busy until the server stops."""


@asynccontextmanager
async def serving(
    app_of: Any, environ: Mapping[str, str], *, port: int = 0, host: str = "127.0.0.1"
) -> AsyncIterator[str]:
    """The app that `app_of(settings)` gives, served in this event loop, on a free port unless one is named; yields its
    address."""
    with listen(host, port) as listener:
        port = listener.getsockname()[1]
        settings: Settings = load_settings({**KEYWORDS_ALONE, **environ, "A2A_PORT": str(port)}, env_file=None)
        app: ASGIApp = app_of(settings)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        server.capture_signals = nullcontext  # type: ignore[method-assign]
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started:
                if task.done():
                    await task
                    raise RuntimeError("the app did not start")
                await asyncio.sleep(0.005)
            yield f"http://{host}:{port}"
        finally:
            server.should_exit = True
            await task
            # On a busy machine connections outlive the graceful shutdown.
            await abort_connections(server)


@dataclass
class CommandLine:
    """`platform-engineer ...` in a process of its own, until it is left."""

    arguments: list[str]
    environ: Mapping[str, str]
    cwd: str = ""
    process: asyncio.subprocess.Process | None = None
    url: str = ""
    output: list[str] = field(default_factory=list)
    _reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> CommandLine:
        names = ("PATH", "HOME", "LANG", "TMPDIR", *MEASURED)
        base = {name: os.environ[name] for name in names if name in os.environ}
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ai_platform_engineering.cli",
            *self.arguments,
            env={**base, "PYTHONPATH": str(ROOT), "SHUTDOWN_GRACE": "0", **KEYWORDS_ALONE, **self.environ},
            # Away from the repository, where a developer may have a .env of their own.
            cwd=self.cwd or self.environ.get("DATA_DIR", "/"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read(ready))
        try:
            self.url = await asyncio.wait_for(ready, START_SECONDS)
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self, signal_number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal_number)
            try:
                await asyncio.wait_for(self.process.wait(), 30)
            except TimeoutError:
                self.process.kill()
        code = await self.process.wait()
        if self._reader is not None:
            await self._reader
        return code

    async def _read(self, ready: asyncio.Future[str]) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            text = line.decode(errors="replace")
            self.output.append(text)
            if (match := READY.search(text)) and not ready.done():
                ready.set_result(match[1])
        if not ready.done():
            ready.set_exception(RuntimeError("".join(self.output) or "it ended without a word"))


@dataclass
class Caller:
    """A client of one A2A server, speaking through the SDK."""

    url: str
    http: httpx.AsyncClient
    client: Any
    agent: str = "supervisor"
    task_id: str = ""
    """The task that the last message went to."""
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when something has come back."""

    async def updates(
        self,
        said: str | Mapping[str, Any],
        *,
        context_id: str = "",
        task_id: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[StreamResponse]:
        """What comes back for words, or for data."""
        part = Part(text=said) if isinstance(said, str) else Part()
        if not isinstance(said, str):
            set_value(part.data, said)
        message = Message(
            message_id=os.urandom(8).hex(), context_id=context_id, task_id=task_id, role=Role.ROLE_USER, parts=[part]
        )
        if metadata:
            message.metadata.update(dict(metadata))
        async for update in self.client.send_message(SendMessageRequest(message=message), context=ClientCallContext()):
            self.task_id = update.task.id or self.task_id
            self.heard.set()
            yield update

    async def ask(self, text: str | Mapping[str, Any], **options: Any) -> list[Event]:
        """The events of a whole run."""
        decoder = Decoder(self.agent)
        events = [event async for update in self.updates(text, **options) for event in decoder.feed(update)]
        return [*events, *decoder.finish()]


@asynccontextmanager
async def calling(url: str, agent: str = "supervisor") -> AsyncIterator[Caller]:
    async with httpx.AsyncClient(timeout=httpx.Timeout(10, read=60)) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
        yield Caller(url, http, client, agent)
