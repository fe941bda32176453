"""Subjects: what is measured, seen from outside. One with a server and one without are asked in the same way."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

import uvloop
import yaml

from benchmarks.processes import Process, started
from benchmarks.samples import Answered, Sample, sample, steady_rate
from benchmarks.scenario import QUESTION, manifests
from benchmarks.traffic import Connection, open_stream

IN_MEMORY = {"EVENT_LOG": "memory", "CONVERSATIONS": "memory"}
LOG_IN_FILE = {"EVENT_LOG": "sqlite", "CONVERSATIONS": "memory"}
AS_IT_COMES: Mapping[str, str] = {}
_AGENTS_KEY = {"A2A_AGENTS_AUTH_KEY": "a-key-for-the-benchmark"}

Key = TypeVar("Key")
Kind = TypeVar("Kind")


class Loadable(Protocol):
    def load(self, requests: int, *, streams: int = 1, context: str | None = None) -> Sample:
        """Ask that many times, `streams` at once, each in a conversation of its own or all in one."""


class Subject(Loadable, Protocol):
    def waiting(self, streams: int) -> AbstractContextManager[None]:
        """Open that many streams, which wait for their model as long as the context lasts."""

    def resident_mb(self) -> float: ...

    def resident_parts(self) -> list[float]:
        """The resident memory of each process that a request goes through, the first process first."""


@dataclass(frozen=True)
class Alone:
    """A process that is asked over its standard input; `others` are processes that it uses."""

    process: Process
    others: Sequence[Process] = ()

    def load(self, requests: int, *, streams: int = 1, context: str | None = None) -> Sample:
        before, began = _clocks(self.process, *self.others), time.perf_counter()
        answers = self.process.order({"requests": requests, "streams": streams, "context": context})
        seconds = time.perf_counter() - began
        spent = _spent(before, _clocks(self.process, *self.others))
        return sample([Answered(**answer) for answer in answers], spent, seconds)

    @contextmanager
    def waiting(self, streams: int) -> Iterator[None]:
        """They end with the process, not with the context."""
        self.process.order({"requests": streams, "streams": streams, "context": None, "background": True})
        yield

    def resident_mb(self) -> float:
        return self.process.resident_mb()

    def resident_parts(self) -> list[float]:
        return [process.resident_mb() for process in (self.process, *self.others)]


@dataclass(frozen=True)
class Served:
    """A server that is asked over A2A; `others` are the servers it asks in turn.

    If it is `steady`, its requests per second are those while all streams are busy.
    """

    process: Process
    others: Sequence[Process] = ()
    question: str = QUESTION
    bearer: str | None = None
    steady: bool = False

    def load(self, requests: int, *, streams: int = 1, context: str | None = None) -> Sample:
        before, began = _clocks(self.process, *self.others), time.perf_counter()
        # On two cores, what the client takes is missing to the server that is measured.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            answers = runner.run(self._answers(requests, streams, context))
        seconds = time.perf_counter() - began
        found = sample(answers, _spent(before, _clocks(self.process, *self.others)), seconds)
        return replace(found, per_second=steady_rate(answers, streams)) if self.steady else found

    @contextmanager
    def waiting(self, streams: int) -> Iterator[None]:
        with ExitStack() as stack:
            for _ in range(streams):
                stack.enter_context(open_stream(self.process.url, self.question))
            yield

    def resident_mb(self) -> float:
        return self.process.resident_mb()

    def resident_parts(self) -> list[float]:
        return [process.resident_mb() for process in (self.process, *self.others)]

    async def _answers(self, requests: int, streams: int, context: str | None) -> list[Answered]:
        waiting = iter(range(requests))
        async with AsyncExitStack() as stack:
            connections = [
                await stack.enter_async_context(Connection(self.process.url, self.bearer)) for _ in range(streams)
            ]

            async def work(connection: Connection) -> list[Answered]:
                return [await connection.ask(self.question, context) for _ in waiting]

            return [answer for part in await asyncio.gather(*map(work, connections)) for answer in part]


@contextmanager
def together(subjects: Mapping[Key, AbstractContextManager[Kind]]) -> Iterator[dict[Key, Kind]]:
    """All of them, started at the same time."""
    with ExitStack() as stack, ThreadPoolExecutor(len(subjects)) as starters:
        yield dict(zip(subjects, starters.map(stack.enter_context, subjects.values()), strict=True))


@contextmanager
def bare(agents: int = 1, *, provider: str | None = None) -> Iterator[Alone]:
    """`create_deep_agent` as it comes, with the model in its process or that of a provider."""
    options = [f"--provider={provider}"] if provider else []
    with started("benchmarks.alone", "bare", f"--agents={agents}", *options) as process:
        yield Alone(process)


@contextmanager
def graph() -> Iterator[Alone]:
    """The product's graph without a server."""
    with workplace() as environ, started("benchmarks.alone", "graph", environ={**environ, **IN_MEMORY}) as process:
        yield Alone(process)


@contextmanager
def product(
    storage: Mapping[str, str] = AS_IT_COMES,
    *,
    remote: bool = False,
    agents: int = 1,
    options: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    provider: str | None = None,
    bearer: str | None = None,
) -> Iterator[Served]:
    """The supervisor on a server, the agent that is asked inside it or on a server of its own.

    `provider` is the address of a model provider, in place of the models in the processes. `bearer` is the token of
    the requests.
    """
    with ExitStack() as stack:
        if provider is not None:
            options = [*options, "--provider"]
            storage = {**storage, **provider_settings(provider)}
        settings = {**stack.enter_context(workplace(agents)), **storage, **(environ or {})}
        others = []
        if remote:
            # With a data directory each, they share no other key that the supervisor could sign delegations with.
            settings |= _AGENTS_KEY
            place = {**stack.enter_context(workplace()), **storage, **_AGENTS_KEY}
            others.append(stack.enter_context(started("benchmarks.serve", "agent", *options, environ=place)))
            settings |= {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": others[0].url}
        supervisor = stack.enter_context(started("benchmarks.serve", "supervisor", *options, environ=settings))
        yield Served(supervisor, others, bearer=bearer)


@contextmanager
def served(settings: Mapping[str, str], *arguments: str) -> Iterator[Process]:
    """The product as its command starts it, with an empty data directory."""
    with TemporaryDirectory() as folder:
        environ = {"DATA_DIR": folder, "LOG_LEVEL": "warning", **settings}
        with started("ai_platform_engineering.cli", "serve", "--port=0", *arguments, environ=environ) as process:
            yield process


@contextmanager
def command(provider: str, storage: Mapping[str, str], *arguments: str) -> Iterator[Process]:
    """The product as its command starts it, with the agent that is asked and the model of a provider."""
    with workplace() as place, served({**place, **provider_settings(provider), **storage}, *arguments) as process:
        yield process


@contextmanager
def tool(transport: str) -> Iterator[Alone]:
    """One tool, called over an MCP transport; `fastmcp` is a server of FastMCP in memory."""
    with workplace() as environ, ExitStack() as stack:
        server: dict[str, Any] = {"name": "argocd", "transport": transport}
        others = []
        match transport:
            case "memory":
                server |= {"module": "benchmarks.scenario:server"}
            case "fastmcp":
                server |= {"transport": "memory", "module": "benchmarks.fastmcp_server:server"}
            case "stdio":
                # A server runs in an empty directory.
                path = str(Path(__file__).parents[1])
                server |= {"command": sys.executable, "args": ["-m", "benchmarks.tool_server", "stdio"]}
                server |= {"env": {"PYTHONPATH": path}}
            case _:
                others.append(stack.enter_context(started("benchmarks.tool_server", "http")))
                server |= {"url": others[0].ready_line}
        arguments = ["tool", f"--server={json.dumps(server)}"]
        yield Alone(stack.enter_context(started("benchmarks.alone", *arguments, environ=environ)), others)


@contextmanager
def agent() -> Iterator[Process]:
    """An agent on a server of its own, for clients that ask it directly."""
    with workplace() as environ, started("benchmarks.serve", "agent", environ={**environ, **IN_MEMORY}) as process:
        yield process


@contextmanager
def client(what: str, url: str) -> Iterator[Alone]:
    """A client of `benchmarks.replaced`; the CPU of the server that it asks is not counted."""
    with started("benchmarks.replaced", what, f"--url={url}") as process:
        yield Alone(process)


@contextmanager
def workplace(agents: int = 1) -> Iterator[dict[str, str]]:
    """The settings of a product that has these agents and an empty directory for its files."""
    with TemporaryDirectory() as folder:
        directory = Path(folder, "agents")
        directory.mkdir()
        for manifest in manifests(agents):
            fields = manifest.model_dump(mode="json", exclude_defaults=True)
            Path(directory, f"{manifest.name}.yaml").write_text(yaml.safe_dump(fields))
        yield {
            "DATA_DIR": str(Path(folder, "data")),
            "AGENTS_DIR": str(directory),
            "LOG_LEVEL": "warning",
            "SANDBOX": "false",
            "ENABLE_NETUTILS": "false",
        }


def provider_settings(address: str) -> dict[str, str]:
    return {
        "LLM_PROVIDER": "openai",
        "OPENAI_ENDPOINT": f"{address}/v1",
        "OPENAI_API_KEY": "not-a-key",
        "MODEL_NAME": "scripted",
    }


def _clocks(*processes: Process) -> list[float]:
    return [process.cpu_seconds() for process in processes]


def _spent(before: Sequence[float], after: Sequence[float]) -> list[float]:
    return [end - start for start, end in zip(before, after, strict=True)]
