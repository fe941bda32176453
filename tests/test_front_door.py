"""The supervisor as people first meet it: a process with nothing configured, asked over HTTP."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from a2a.types.a2a_pb2 import GetTaskRequest, TaskState

from ai_platform_engineering.events import FinalResult
from tests.invariants import check
from tests.servers import CommandLine, calling

# As printed in the documentation of the streaming analysis, without "jsonrpc".
QUESTION = (
    '{"id":"test","method":"message/stream","params":{"message":{"role":"user",'
    '"parts":[{"kind":"text","text":"show argocd version"}],"messageId":"msg-test"}}}'
)


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def supervisor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandLine]:
    async with CommandLine(["--port", "0"], {"DATA_DIR": str(tmp_path_factory.mktemp("data"))}) as process:
        yield process


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def slow_supervisor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandLine]:
    """One whose model takes its time, so that there is something to interrupt."""
    environ = {"DATA_DIR": str(tmp_path_factory.mktemp("data")), "OFFLINE_MODEL_DELAY": "0.03"}
    async with CommandLine(["serve", "--port", "0"], environ) as process:
        yield process


async def frames(url: str, body: str) -> list[Any]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    async with httpx.AsyncClient(timeout=30) as http:
        response = await http.post(url, content=body, headers=headers)
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = response.text.splitlines()
    ids = [int(line[3:]) for line in lines if line.startswith("id:")]
    assert ids == list(range(len(ids))), "a gap in the numbers means a loss"
    return [json.loads(line[5:])["result"] for line in lines if line.startswith("data:")]


def text_of(result: Any) -> str:
    return "".join(part.get("text", "") for part in result.get("artifact", {}).get("parts", []))


async def test_the_first_question_streams_plan_agents_tools_and_answer(supervisor: CommandLine) -> None:
    results = await frames(supervisor.url, QUESTION)
    assert (results[0]["kind"], results[0]["status"]["state"]) == ("task", "submitted")
    assert results[1]["status"]["state"] == "working"
    artifacts = [result for result in results if result["kind"] == "artifact-update"]
    names = [result["artifact"]["name"] for result in artifacts]

    plan = next(result for result in artifacts if result["artifact"]["name"] == "execution_plan_update")
    heading, *steps = text_of(plan).splitlines()
    assert heading.startswith("⟦🎯 Execution Plan: ")
    assert steps[0].startswith("[Argocd] ")
    assert plan["artifact"]["parts"][1]["data"]["steps"][0]["agent"] == "argocd"

    shown = [text_of(result) for result in artifacts if result["artifact"]["name"].startswith("tool_notification")]
    assert shown == [
        "🔧 Supervisor: Calling Agent Argocd...",
        "🔧 Argocd: Calling tool: Version_Service__Version",
        "✅ Argocd: Tool Version_Service__Version completed",
        "✅ Supervisor: Argocd completed",
    ]
    final = artifacts[names.index("final_result")]
    streamed = [
        result
        for result in artifacts
        if result["artifact"]["metadata"].get("message_id") == final["artifact"]["metadata"]["answer_message_id"]
    ]
    assert "".join(map(text_of, streamed)) == text_of(final)
    assert "v3.1.8" in text_of(final)
    assert len(streamed) > 5, "the answer comes as it is written"
    assert [result["append"] for result in streamed] == [False] + [True] * (len(streamed) - 1)
    assert [result["lastChunk"] for result in streamed] == [False] * (len(streamed) - 1) + [True]
    assert results[-1]["status"]["state"] == "completed"
    assert results[-1]["metadata"]["trace_id"] == final["artifact"]["metadata"]["trace_id"]

    everything = [result.get("artifact", result)["metadata"] for result in results[1:]]
    assert [metadata["seq"] for metadata in everything] == list(range(1, len(everything) + 1))
    assert all({"source_agent", "event", "trace_id"} <= metadata.keys() for metadata in everything)


@pytest.mark.parametrize(
    ("question", "agents", "words"),
    [
        ("list my Jira tickets", ["jira"], ["PLAT-41", "SHOP-116"]),
        ("compare Jira and GitHub issues", ["jira", "github"], ["SHOP-118", "payments-api"]),
        ("sync the guestbook app", ["argocd"], ["guestbook"]),
        ("create a Jira ticket for the checkout latency problem", ["jira"], ["SHOP-120"]),
        ("who is on call?", ["pagerduty"], ["Priya Nair"]),
        ("order me a pizza", [], ["argocd", "jira"]),
    ],
)
async def test_the_offline_model_serves_the_sandbox(
    supervisor: CommandLine, question: str, agents: list[str], words: list[str]
) -> None:
    async with calling(supervisor.url) as caller:
        events = await caller.ask(question)
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert [event.agent for event in events if type(event).__name__ == "AgentStarted"] == agents
    for word in words:
        assert word.lower() in ending.text.lower()
    assert "offline model" in ending.text


async def test_thirty_two_conversations_at_once_stay_apart(supervisor: CommandLine) -> None:
    async with calling(supervisor.url) as caller:

        async def one(number: int) -> str:
            seen = []
            async for update in caller.updates(f"create a Jira ticket about zq{number:03}x being slow"):
                seen.append(str(update))
            return "".join(seen)

        streams = await asyncio.gather(*map(one, range(32)))
    for number, stream in enumerate(streams):
        assert f"zq{number:03}x" in stream
        others = [other for other in range(32) if other != number and f"zq{other:03}x" in stream]
        assert not others, f"conversation {number} shows {others}"


async def test_a_second_message_waits_its_turn_and_is_seen_waiting(slow_supervisor: CommandLine) -> None:
    async with calling(slow_supervisor.url) as caller:
        order: list[tuple[str, str]] = []
        when: dict[tuple[str, str], float] = {}
        working = asyncio.Event()

        async def follow(name: str) -> None:
            async for update in caller.updates("show argocd version", context_id="one"):
                status = update.task.status if update.HasField("task") else update.status_update.status
                state = status.state
                if state:
                    order.append((name, {1: "submitted", 2: "working", 3: "completed"}[state]))
                    when[order[-1]] = status.timestamp.ToMilliseconds()
                if state == TaskState.TASK_STATE_WORKING:
                    working.set()

        first = asyncio.create_task(follow("first"))
        await asyncio.wait_for(working.wait(), 90)
        await asyncio.gather(first, follow("second"))
    for name in ("first", "second"):
        assert [state for follower, state in order if follower == name] == ["submitted", "working", "completed"]
    assert order.index(("second", "submitted")) < order.index(("first", "completed"))
    # Two connections are read in any order; the supervisor's clock says what came first.
    assert when["first", "completed"] <= when["second", "working"]


async def test_a_caller_that_goes_away_does_not_stop_the_run(slow_supervisor: CommandLine) -> None:
    async with calling(slow_supervisor.url) as caller:
        task_id = ""
        async for update in caller.updates("show argocd version"):
            task_id = update.task.id
            break
        async with asyncio.timeout(90):
            task = await caller.client.get_task(GetTaskRequest(id=task_id))
            while task.status.state != TaskState.TASK_STATE_COMPLETED:
                await asyncio.sleep(0.1)
                task = await caller.client.get_task(GetTaskRequest(id=task_id))
        assert [artifact for artifact in task.artifacts if artifact.name == "final_result"]


async def test_a_signal_ends_it_in_order(slow_supervisor: CommandLine) -> None:
    assert await slow_supervisor.stop(signal.SIGTERM) == 0
    assert "Traceback" not in "".join(slow_supervisor.output)
