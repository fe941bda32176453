"""Remote agents as the supervisor sees them: through real sockets, recorded streams, and servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Part
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ai_platform_engineering.events import AgentFinished, Event, FinalResult, PlanUpdated, ToolFinished, ToolStarted
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.utils.a2a_common.a2a_remote_agent_connect import (
    A2ARemoteAgentConnectTool,
    RemoteAgentError,
    RemoteThread,
)
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from tests.invariants import check
from tests.servers import CommandLine, calling, serving

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CONTEXT = RequestContext("context", "task", "trace", user="alex", stream_sub_agent_text=True)


def recorded(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text())


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    return {"DATA_DIR": str(folder), "OFFLINE_MODEL_DELAY": "0", "SANDBOX": "true", **more}


def remote_argocd(folder: Path, url: str, **more: str) -> dict[str, str]:
    return environ_of(folder, DISTRIBUTED_AGENTS="argocd", ARGOCD_AGENT_URL=url, **more)


def replaying(stream: Sequence[Any], received: list[Any] | None = None) -> Any:
    """An agent server that says what was recorded, whatever it is asked."""

    def app(settings: Settings) -> Starlette:
        async def card(request: Request) -> Response:
            described = recorded("a2a_agent_card.json")
            for interface in described["supportedInterfaces"]:
                interface["url"] = settings.public_url
            # The recording is of protocol 0.3.
            described["supportedInterfaces"] = [
                i for i in described["supportedInterfaces"] if i["protocolVersion"] == "0.3"
            ]
            return JSONResponse({**described, "url": settings.public_url})

        async def rpc(request: Request) -> Response:
            body = await request.json()
            if received is not None:
                received.append({"headers": dict(request.headers), "body": body})

            async def frames() -> AsyncIterator[str]:
                for result in stream:
                    yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': body['id'], 'result': result})}\n\n"

            return StreamingResponse(frames(), media_type="text/event-stream")

        return Starlette(routes=[Route("/.well-known/agent-card.json", card), Route("/", rpc, methods=["POST"])])

    return app


@asynccontextmanager
async def connected(url: str, **more: str) -> AsyncIterator[A2ARemoteAgentConnectTool]:
    with TemporaryDirectory() as folder:
        settings = load_settings({"DATA_DIR": folder, **more}, env_file=None)
        connection = A2ARemoteAgentConnectTool("argocd", url, settings)
        try:
            yield connection
        finally:
            await connection.aclose()


def stream_events(connection: A2ARemoteAgentConnectTool, question: str, delegation: str) -> AsyncIterator[Event]:
    return connection.stream([Part(text=question)], CONTEXT, RemoteThread(delegation))


async def test_the_recordings_are_what_a_real_agent_says(tmp_path: Path) -> None:
    from tests.fixtures.record import record

    async with serving(lambda settings: create_agent_app(settings, "argocd"), environ_of(tmp_path)) as url:
        card, stream = await record(url)
    assert card == recorded("a2a_agent_card.json"), "record again: python -m tests.fixtures.record"
    assert stream == recorded("a2a_task_sse_stream.json"), "record again: python -m tests.fixtures.record"


async def test_a_recorded_stream_becomes_the_agents_events(tmp_path: Path) -> None:
    received: list[Any] = []
    async with (
        serving(replaying(recorded("a2a_task_sse_stream.json"), received), {}) as agent_url,
        serving(create_app, remote_argocd(tmp_path, agent_url)) as url,
        calling(url) as caller,
    ):
        events = await caller.ask("show argocd version")
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert "v3.1.8" in ending.text
    tool = next(event for event in events if isinstance(event, ToolStarted))
    assert (tool.agent, tool.tool) == ("argocd", "version_service__version")
    assert len(received) == 1, "one delegation is one message: no model of ours stands in between"
    message = received[0]["body"]["params"]["message"]
    assert message["metadata"]["trace_id"]


async def test_user_trace_and_key_travel_along() -> None:
    received: list[Any] = []
    async with (
        serving(replaying(recorded("a2a_task_sse_stream.json"), received), {}) as url,
        connected(url, A2A_AGENTS_AUTH_KEY="a-shared-key-of-ours") as connection,
    ):
        [_ async for _ in stream_events(connection, "q", "d1")]
    [request] = received
    message = request["body"]["params"]["message"]
    assert request["headers"]["authorization"] == "Bearer a-shared-key-of-ours"
    assert message["metadata"].pop("delegation").startswith("v1.")
    assert message["metadata"] == {"trace_id": "trace", "user": "alex", "stream_text": True, "delegated": True}
    assert message["contextId"] == "d1"


async def test_an_agent_that_is_not_there_is_answered_for_at_once_and_the_run_goes_on(tmp_path: Path) -> None:
    environ = remote_argocd(tmp_path, "http://127.0.0.1:9")
    async with serving(create_app, environ) as url, calling(url) as caller:
        started = time.monotonic()
        events = await caller.ask("show argocd version and list my Jira tickets")
        elapsed = time.monotonic() - started
    assert isinstance(check(events), FinalResult)
    ends = {event.agent: event for event in events if isinstance(event, AgentFinished)}
    assert not ends["argocd"].ok
    assert "cannot be reached (connection refused)" in (ends["argocd"].reason or "")
    assert ends["jira"].ok
    statuses = {step.agent: step.status for step in [e for e in events if isinstance(e, PlanUpdated)][-1].steps}
    assert statuses["argocd"] == "failed"
    assert statuses["jira"] == "completed"
    assert elapsed < 20


async def test_a_server_that_takes_connections_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with connected(f"http://127.0.0.1:{silent.getsockname()[1]}", AGENT_CONNECT_TIMEOUT="0.3") as connection:
            started = time.monotonic()
            with pytest.raises(RemoteAgentError, match=r"cannot be reached \(no answer within 0\.3 s\)"):
                [_ async for _ in stream_events(connection, "q", "d")]
            assert time.monotonic() - started < 20


async def test_an_agent_that_freezes_after_its_card_was_read_is_given_up(tmp_path: Path) -> None:
    async with (
        CommandLine(["agent", "argocd", "--port", "0"], environ_of(tmp_path)) as agent,
        connected(agent.url, AGENT_CONNECT_TIMEOUT="3", AGENT_RECONNECT_SECONDS="1") as connection,
    ):
        events = [event async for event in stream_events(connection, "show the version", "d1")]
        check(events, agent="argocd")
        assert agent.process is not None
        agent.process.send_signal(signal.SIGSTOP)
        try:
            started = time.monotonic()
            with pytest.raises(RemoteAgentError, match="cannot be reached"):
                [_ async for _ in stream_events(connection, "show the version", "d2")]
            assert time.monotonic() - started < 60
        finally:
            agent.process.send_signal(signal.SIGCONT)
        events = [event async for event in stream_events(connection, "show the version", "d3")]
        check(events, agent="argocd")


async def test_an_agent_that_dies_while_it_works_is_a_failure_and_not_a_hang() -> None:
    stream = recorded("a2a_task_sse_stream.json")
    broken = [event for event in stream if event["kind"] != "status-update" or not event["final"]]
    async with serving(replaying(broken[:4]), {}) as url, connected(url) as connection:
        events = [event async for event in stream_events(connection, "q", "d")]
    ending = check(events, agent="argocd")
    assert "connection" in getattr(ending, "message", "")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Response("nothing here", status_code=404), "HTTP 404"),
        (Response("who are you", status_code=401), "HTTP 401"),
        (Response("<html>"), "not"),
    ],
)
async def test_what_is_not_an_agent_says_what_it_is_instead(answer: Response, reason: str) -> None:
    async def anything(request: Request) -> Response:
        return answer

    def app(_: Settings) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", anything, methods=["GET", "POST"])])

    async with serving(app, {}) as url, connected(url) as connection:
        with pytest.raises(RemoteAgentError) as caught:
            [_ async for _ in stream_events(connection, "q", "d")]
    assert reason in str(caught.value)
    assert url not in str(caught.value)


async def test_cancel_reaches_the_remote_agent(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environ = environ_of(tmp_path, NETUTILS_ALLOW_PRIVATE="true", NETUTILS_TIMEOUT="30")
        async with (
            serving(lambda settings: create_agent_app(settings, "netutils"), environ) as url,
            connected(url) as connection,
            calling(url) as caller,
        ):
            question = f"http check http://127.0.0.1:{silent.getsockname()[1]}/"
            working = asyncio.Event()

            async def consume() -> None:
                async for event in stream_events(connection, question, "d"):
                    if isinstance(event, ToolStarted):
                        working.set()

            task = asyncio.create_task(consume())
            await asyncio.wait_for(working.wait(), 90)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            tasks = (await caller.http.get(f"{url}/tasks", headers={"A2A-Version": "1.0"})).json()["tasks"]
    assert [task["status"]["state"] for task in tasks] == ["TASK_STATE_CANCELED"]


async def test_agents_that_come_up_later_serve_the_conversation_that_missed_them(
    tmp_path: Path, unused_port: int
) -> None:
    environ = remote_argocd(tmp_path, f"http://127.0.0.1:{unused_port}", AGENT_RECHECK_INTERVAL="1")
    async with serving(create_app, environ) as url, calling(url) as caller:
        missed = await caller.ask("show argocd version", context_id="c")
        assert not next(event for event in missed if isinstance(event, AgentFinished)).ok
        async with CommandLine(["agent", "argocd", "--port", str(unused_port)], environ_of(tmp_path)):
            served = await caller.ask("show argocd version", context_id="c")
    check(missed)
    check(served)
    assert all(event.ok for event in served if isinstance(event, AgentFinished | ToolFinished))
    assert "v3.1.8" in getattr(served[-1], "text", "")


async def test_the_supervisor_lists_the_tools_of_remote_agents_too(tmp_path: Path) -> None:
    async with (
        serving(lambda settings: create_agent_app(settings, "argocd"), environ_of(tmp_path)) as agent_url,
        serving(create_app, remote_argocd(tmp_path, agent_url)) as url,
        calling(url) as caller,
    ):
        rows = (await caller.http.get(f"{url}/tools")).json()["tools"]
    tools = {(row["agent"], row["name"]): row for row in rows}
    assert tools["argocd", "sync_application"]["read_only"] is False
    assert tools["argocd", "version_service__version"]["read_only"] is True
    assert ("jira", "search_issues") in tools
