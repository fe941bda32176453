"""A run that is stopped says what it had done, and the next turn knows it: finished calls keep their results."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest

from ai_platform_engineering.events import (
    AgentFinished,
    Canceled,
    Event,
    FinalResult,
    InputRequired,
    ToolFinished,
)
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.utils.a2a_common.wire import Decoder
from tests.graphs.provider_rules import Json
from tests.invariants import check
from tests.people.dialogues import environ_of
from tests.people.openai_server import Calls, OpenAIServer, openai_server, tools_of, turn_of
from tests.servers import Caller, CommandLine, calling, serving
from tests.untrusted_text import without_delimiters

TICKET = ("create_issue", {"project": "SHOP", "summary": "payments-api is down"})
JIRA_SAYS = "Created the ticket about payments-api."


def part_of(
    server: Callable[[], OpenAIServer], argocd_call: tuple[str, dict[str, str]]
) -> Callable[[Json], str | Calls]:
    """Jira creates a ticket. Argo CD calls a tool and is then held before its answer."""

    def part(body: Json) -> str | Calls:
        tools, turn = tools_of(body), turn_of(body)
        question = str(next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user"))
        if "task" in tools:
            if "both" in question and not turn:
                return [("task", {"description": "do it", "subagent_type": name}) for name in ("jira", "argocd")]
            return "Here is what I know."
        if "create_issue" in tools:
            return JIRA_SAYS if turn else [TICKET]
        if not turn:
            return [argocd_call]
        server().held.wait(60)
        if server().broken:
            raise ConnectionAbortedError
        return "Argo CD is done."

    return part


@pytest.fixture
def server(request: pytest.FixtureRequest) -> object:
    call = getattr(request, "param", ("get_application", {"application": "payments-api"}))
    with openai_server(part_of(lambda: server, call)) as server:
        yield server


def environ_with(server: OpenAIServer, folder: Path, remote: tuple[str, ...] = ()) -> dict[str, str]:
    environ = environ_of(folder, remote) | server.environ
    return environ | {"ENABLE_RAG": "false", "LOG_LEVEL": "warning"}


@asynccontextmanager
async def placed(environ: dict[str, str], remote: tuple[str, ...] = ()) -> AsyncIterator[Caller]:
    """A supervisor in this process, with the agents in `remote` on servers of their own."""
    async with AsyncExitStack() as stack:
        for name in remote:
            agent = serving(partial(create_agent_app, name=name), environ)
            environ[f"{name.upper()}_AGENT_URL"] = await stack.enter_async_context(agent)
        url = await stack.enter_async_context(serving(create_app, environ))
        yield await stack.enter_async_context(calling(url))


@asynccontextmanager
async def started(environ: dict[str, str]) -> AsyncIterator[tuple[CommandLine, Caller]]:
    """A supervisor in a process of its own."""
    async with CommandLine(["serve", "--port", "0"], environ) as supervisor, calling(supervisor.url) as caller:
        yield supervisor, caller


async def until(caller: Caller, is_there: Callable[[list[Event]], bool]) -> tuple[list[Event], asyncio.Task[None]]:
    """Ask for both, and go on listening; what was heard when enough is there."""
    events: list[Event] = []
    enough = asyncio.Event()

    async def listen() -> None:
        decoder = Decoder("supervisor")
        async for update in caller.updates("do both", context_id="c"):
            events.extend(decoder.feed(update))
            if is_there(events):
                enough.set()

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(60):
        await enough.wait()
    return events, listening


def both_tools_finished(events: list[Event]) -> bool:
    """The ticket is there and Jira has said so, Argo CD has used its tool and is at work."""
    jira = any(isinstance(event, AgentFinished) and event.agent == "jira" and event.ok for event in events)
    return jira and any(isinstance(event, ToolFinished) and event.agent == "argocd" for event in events)


def results_in(history: list[Json]) -> list[str]:
    return [without_delimiters(str(message["content"])) for message in history if message["role"] == "tool"]


@pytest.mark.parametrize("remote", [(), ("jira", "argocd")], ids=["inside", "remote"])
async def test_after_a_cancel_the_model_knows_what_finished(
    server: OpenAIServer, tmp_path: Path, remote: tuple[str, ...]
) -> None:
    async with placed(environ_with(server, tmp_path, remote), remote) as caller:
        events, listening = await until(caller, both_tools_finished)
        await caller.client.cancel_task(CancelTaskRequest(id=caller.task_id))
        await listening
        ending = check(events)
        assert ending == Canceled(
            "user",
            "Completed: Jira create_issue, Argocd get_application. Outcome unknown: the rest of Argocd's work. "
            "Check before asking again.",
        )
        for question in ("what came of it?", "and now?"):
            assert isinstance(check(await caller.ask(question, context_id="c")), FinalResult)
    assert server.refusals == []
    done, interrupted = results_in(server.histories[-1])
    assert done == JIRA_SAYS
    assert "outcome is unknown" in interrupted
    assert interrupted.endswith("It had completed: get_application.")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
async def test_without_checkpoints_people_and_the_model_know_what_had_finished_when_the_process_died(
    server: OpenAIServer, tmp_path: Path, how: signal.Signals
) -> None:
    environ = environ_with(server, tmp_path) | {"CONVERSATIONS": "memory"}
    async with started(environ) as (supervisor, caller):
        _, listening = await until(caller, both_tools_finished)
        await supervisor.stop(how)
        listening.cancel()
        await asyncio.wait([listening])
        task_id = caller.task_id
    async with started(environ) as (_, caller):
        task = await caller.client.get_task(GetTaskRequest(id=task_id))
        (part,) = task.status.message.parts
        assert part.text == (
            "The supervisor was stopped while it worked on this. Completed: Jira create_issue, Argocd get_application. "
            "Outcome unknown: the rest of Argocd's work. Check before asking again."
        )
        assert isinstance(check(await caller.ask("what came of it?", context_id="c")), FinalResult)
    assert server.refusals == []
    history = server.histories[-1]
    asked = [message["content"] for message in history if message["role"] == "user"]
    if how == signal.SIGKILL:
        assert asked == ["do both", "what came of it?"]
        assert part.text in [message["content"] for message in history if message["role"] == "assistant"]
    else:
        assert asked == ["what came of it?"]


async def test_a_remote_agent_that_is_killed_leaves_what_it_had_done(
    server: OpenAIServer, tmp_path: Path, unused_port: int
) -> None:
    environ = environ_with(server, tmp_path, ("argocd",)) | {"ARGOCD_AGENT_URL": f"http://127.0.0.1:{unused_port}"}
    async with (
        CommandLine(["agent", "argocd", "--port", str(unused_port)], environ) as agent,
        placed(environ) as caller,
    ):
        events, listening = await until(caller, both_tools_finished)
        await agent.stop(signal.SIGKILL)
        await listening
        assert isinstance(check(events), FinalResult)
    done, lost = results_in(server.histories[-1])
    assert done == JIRA_SAYS
    assert "Completed: Argocd get_application. Outcome unknown" in lost


@pytest.mark.parametrize("server", [("rollback_application", {"application": "payments-api"})], indirect=True)
async def test_a_canceled_form_keeps_what_others_had_done(server: OpenAIServer, tmp_path: Path) -> None:
    async with placed(environ_with(server, tmp_path)) as caller:
        assert isinstance((await caller.ask("do both", context_id="c"))[-1], InputRequired)
        task = await caller.client.cancel_task(CancelTaskRequest(id=caller.task_id))
        assert task.status.message.parts[0].text == (
            "Completed: Jira create_issue. Not done, because it waited for an answer: Argocd rollback_application. "
            "Check before asking again."
        )
        assert isinstance(check(await caller.ask("what came of it?", context_id="c")), FinalResult)
    done, waited = results_in(server.histories[-1])
    assert done == JIRA_SAYS
    assert waited == "This call was ended while it waited for a person's answer. What it waited for was not done."


@pytest.mark.parametrize("remote", [(), ("argocd",)], ids=["inside", "remote"])
async def test_an_agent_whose_model_fails_says_what_it_had_done(
    server: OpenAIServer, tmp_path: Path, remote: tuple[str, ...]
) -> None:
    server.broken = True
    server.held.set()
    environ = environ_with(server, tmp_path, remote) | {"LLM_MAX_RETRIES": "0"}
    async with placed(environ, remote) as caller:
        assert isinstance(check(await caller.ask("do both", context_id="c")), FinalResult)
    done, failed = results_in(server.histories[-1])
    assert done == JIRA_SAYS
    assert re.search(r"Completed( before)?: (Argocd )?get_application\.", failed)
    assert failed.endswith("Check before asking again.")
    assert failed.count("get_application") == 1
