"""Placement cannot be seen: the same conversations give the same events wherever the agents run.

Four agents, remote ones as processes of their own: a selection of placements, and all sixteen as a slow test.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from a2a.types.a2a_pb2 import CancelTaskRequest

from ai_platform_engineering.events import Event, ToolStarted
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.sandbox.store import reset_sandbox, sandbox_path
from ai_platform_engineering.utils.a2a_common.wire import Decoder
from tests.invariants import check
from tests.normalised import NormalRun, normalised
from tests.people.dialogues import placements
from tests.servers import Caller, CommandLine, calling, serving

AGENTS = ("argocd", "jira", "github", "netutils")
OFF = {f"ENABLE_{name}": "false" for name in ("PAGERDUTY",)}


@dataclass(frozen=True)
class Deployment:
    """The environment of one parity run: the sandbox's folder and the addresses of the agents' processes."""

    environ: Mapping[str, str]
    addresses: Mapping[str, str]

    def placed(self, remote: tuple[str, ...]) -> dict[str, str]:
        urls = {f"{name.upper()}_AGENT_URL": self.addresses[name] for name in remote}
        return {**self.environ, **urls, "DISTRIBUTED_AGENTS": ",".join(remote)}


@asynccontextmanager
async def deployment(folder: Path) -> AsyncIterator[Deployment]:
    environ = {"DATA_DIR": str(folder), "SANDBOX": "true", "NETUTILS_ALLOW_PRIVATE": "true", "NETUTILS_TIMEOUT": "20"}
    environ |= {"OFFLINE_MODEL_DELAY": "0", "LOG_LEVEL": "warning", **OFF}
    async with AsyncExitStack() as stack:
        processes = await asyncio.gather(
            *(stack.enter_async_context(CommandLine(["agent", name, "--port", "0"], environ)) for name in AGENTS)
        )
        yield Deployment(environ, {name: process.url for name, process in zip(AGENTS, processes, strict=True)})


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


async def conversation(caller: Caller, context_id: str, *questions: str) -> list[NormalRun]:
    runs = []
    for question in questions:
        events = await caller.ask(question, context_id=context_id, metadata={"stream_sub_agent_text": True})
        check(events)
        runs.append(normalised(events))
    return runs


async def cancelled(caller: Caller, context_id: str, question: str) -> NormalRun:
    """Cancel the run as soon as a tool works."""
    decoder = Decoder("supervisor")
    events: list[Event] = []
    task_id = ""
    async for update in caller.updates(question, context_id=context_id):
        task_id = task_id or update.task.id
        fed = decoder.feed(update)
        events += fed
        if any(isinstance(event, ToolStarted) for event in fed):
            await caller.client.cancel_task(CancelTaskRequest(id=task_id))
    events += decoder.finish()
    check(events)
    return normalised(events)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param([(), ("argocd",), ("jira", "netutils"), AGENTS], id="selected"),
        pytest.param([*placements(AGENTS)], id="all", marks=pytest.mark.slow),
    ],
)
async def test_every_placement_gives_the_same_events(
    tmp_path: Path, silent_port: int, chosen: Sequence[tuple[str, ...]]
) -> None:
    conversations: dict[str, tuple[str, ...]] = {
        "one agent": ("show argocd version",),
        "several in parallel": ("compare Jira and GitHub issues",),
        "one agent twice": ("compare the guestbook app and the payments-api app",),
        "a tool that fails": ("sync the nosuchapp application",),
        "a follow-up": ("show the status of the guestbook app", "what about payments-api?"),
        "a change": ("create a Jira ticket for the slow checkout page",),
        "real tools": ("plan /26 subnets of 10.20.0.0/24 with netutils",),
    }
    results: dict[tuple[str, ...], dict[str, list[NormalRun]]] = {}
    async with deployment(tmp_path) as here:
        world = sandbox_path(tmp_path)
        for remote in chosen:
            async with serving(create_app, here.placed(remote)) as url, calling(url) as caller:
                reset_sandbox(world)
                # Conversations outlive the supervisor, so each placement has its own.
                placed = "+".join(remote)
                runs = {
                    name: await conversation(caller, f"{name} {placed}", *asked)
                    for name, asked in conversations.items()
                }
                check_url = f"http://127.0.0.1:{silent_port}/"
                runs["cancel"] = [await cancelled(caller, f"cancel {placed}", f"netutils: http check {check_url}")]
                results[remote] = runs
    expected = results[()]
    assert_worth_comparing(expected)
    for remote, runs in results.items():
        for name in expected:
            assert runs[name] == expected[name], f"{name} with {remote} remote"


def assert_worth_comparing(runs: Mapping[str, list[NormalRun]]) -> None:
    """Equal runs prove nothing if they are not about what they should be about."""
    delegations: Callable[[str], list[str]] = lambda name: [  # noqa: E731
        call.agent for call in runs[name][-1].items if not isinstance(call, str)
    ]
    assert delegations("one agent") == ["argocd"]
    assert sorted(delegations("several in parallel")) == ["github", "jira"]
    assert delegations("one agent twice") == ["argocd", "argocd"]
    assert any(
        not child.ok
        for call in runs["a tool that fails"][0].items
        if not isinstance(call, str)
        for child in call.inside
        if not isinstance(child, str)
    )
    assert len(runs["a follow-up"]) == 2
    assert "payments-api" in str(runs["a follow-up"][1].ending)
    assert delegations("real tools") == ["netutils"]
    assert runs["cancel"][0].ending.by == "user"
    assert all(runs[name][0].steps for name in runs)
