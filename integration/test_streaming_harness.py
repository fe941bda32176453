"""The event streams of a supervisor with the remote agents github and netutils, over A2A 0.3 and 1.0.

Calls the supervisor at SUPERVISOR_URL; if it is not set, starts supervisor and agents as processes. The streams are
parsed without code of the product, as a client of another vendor would.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

import httpx
import pytest

from integration.quick_sanity import check_placement, doctor_report, processes

Version = Literal["0.3", "1.0"]
VERSIONS: Final[tuple[Version, ...]] = ("0.3", "1.0")
PLAN: Final = ("execution_plan_update", "execution_plan_status_update")
STARTS: Final = "tool_notification_start"
ENDS: Final = "tool_notification_end"


@dataclass(frozen=True)
class Question:
    text: str
    agents: frozenset[str]
    answer: tuple[str, ...]


PULL_REQUESTS: Final = Question("list the open pull requests", frozenset({"github"}), ("acme/",))
SUBNETS: Final = Question(
    "split 10.0.0.0/16 into 4 subnets", frozenset({"netutils"}), ("10.0.64.0/18", "10.0.192.0/18")
)
BOTH: Final = Question(
    "list the open pull requests and split 10.0.0.0/16 into 4 subnets",
    frozenset({"github", "netutils"}),
    (*PULL_REQUESTS.answer, *SUBNETS.answer),
)

HOW_TO: Final = Question(
    "how do I run an agent remotely?", frozenset({"supervisor"}), ("Sources:", "DISTRIBUTED_AGENTS")
)


@dataclass(frozen=True)
class Update:
    """One frame of a stream, in the same form for both protocols. `name` is the artifact's; `state` is lower case."""

    kind: Literal["task", "status", "artifact"]
    name: str = ""
    state: str = ""
    text: str = ""
    data: Sequence[Any] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def agent(self) -> str:
        return str(self.metadata.get("source_agent"))

    @property
    def event(self) -> str:
        return str(self.metadata.get("event"))


@dataclass(frozen=True)
class Run:
    question: Question
    ids: list[int]
    updates: list[Update]

    def named(self, *names: str) -> list[Update]:
        return [update for update in self.updates if update.name in names]

    def first(self, *names: str) -> int:
        return next(place for place, update in enumerate(self.updates) if update.name in names)

    def message(self, message_id: str) -> str:
        return "".join(u.text for u in self.named("streaming_result") if u.metadata["message_id"] == message_id)


def read_0_3(result: dict[str, Any]) -> Update:
    match result["kind"]:
        case "task":
            return Update("task", state=result["status"]["state"])
        case "status-update":
            return Update("status", state=result["status"]["state"], metadata=result["metadata"])
        case "artifact-update":
            return _artifact(result["artifact"])
        case other:
            raise AssertionError(f"an unknown kind of frame: {other}")


def read_1_0(result: dict[str, Any]) -> Update:
    ((kind, body),) = result.items()
    match kind:
        case "task":
            return Update("task", state=_state_1_0(body))
        case "statusUpdate":
            return Update("status", state=_state_1_0(body), metadata=body["metadata"])
        case "artifactUpdate":
            return _artifact(body["artifact"])
        case other:
            raise AssertionError(f"an unknown kind of frame: {other}")


def _state_1_0(body: dict[str, Any]) -> str:
    state: str = body["status"]["state"]
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


def _artifact(artifact: dict[str, Any]) -> Update:
    parts = artifact["parts"]
    return Update(
        "artifact",
        name=artifact["name"],
        text="".join(part.get("text", "") for part in parts),
        data=[part["data"] for part in parts if "data" in part],
        metadata=artifact["metadata"],
    )


def ask(supervisor: httpx.Client, question: Question, version: Version) -> Run:
    message: dict[str, Any] = {"messageId": os.urandom(8).hex()}
    if version == "0.3":
        method = "message/stream"
        message |= {"role": "user", "parts": [{"kind": "text", "text": question.text}]}
    else:
        method = "SendStreamingMessage"
        message |= {"role": "ROLE_USER", "parts": [{"text": question.text}]}
    body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": {"message": message}}
    headers = {"Accept": "text/event-stream", "A2A-Version": version}
    ids, updates = [], []
    with supervisor.stream("POST", "/", json=body, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream"), response.read()
        for line in response.iter_lines():
            if line.startswith("id:"):
                ids.append(int(line[3:]))
            elif line.startswith("data:"):
                frame = json.loads(line[5:])
                assert "error" not in frame, frame["error"]
                updates.append(read_0_3(frame["result"]) if version == "0.3" else read_1_0(frame["result"]))
    return Run(question, ids, updates)


@pytest.fixture(scope="session")
def supervisor() -> Iterator[httpx.Client]:
    key = os.environ.get("A2A_AUTH_SHARED_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = httpx.Timeout(10, read=60)
    if url := os.environ.get("SUPERVISOR_URL"):
        with httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False) as client:
            yield client
        return
    with processes() as deployment:
        check_placement(doctor_report(deployment))
        with httpx.Client(base_url=deployment.url, timeout=timeout, trust_env=False) as client:
            yield client


@pytest.fixture(scope="session", params=VERSIONS, ids=lambda version: f"a2a-{version}")
def version(request: pytest.FixtureRequest) -> Version:
    chosen: Version = request.param
    return chosen


@pytest.fixture(scope="session", params=[PULL_REQUESTS, SUBNETS, BOTH], ids=["github", "netutils", "both"])
def run(request: pytest.FixtureRequest, supervisor: httpx.Client, version: Version) -> Run:
    """The stream of one question. All tests use the same stream."""
    return ask(supervisor, request.param, version)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/.well-known/agent-card.json"])
def test_it_is_healthy(supervisor: httpx.Client, path: str) -> None:
    assert supervisor.get(path).status_code == 200


def test_nothing_is_lost_on_the_way(run: Run) -> None:
    assert run.ids == list(range(len(run.updates)))
    assert [int(update.metadata["seq"]) for update in run.updates[1:]] == run.ids[1:]
    assert len({update.metadata["trace_id"] for update in run.updates[1:]}) == 1


def test_notifications_name_the_agents_that_work(run: Run) -> None:
    started = {u.agent for u in run.named(STARTS) if u.event == "tool_started"}
    assert started == run.question.agents
    for update in run.named(STARTS, ENDS):
        assert update.agent in {"supervisor", *run.question.agents}
        assert update.metadata.get("tool_name") not in {"task", "write_todos"}
        assert "task" not in update.text.lower().split()
    shown = [u.text for u in run.named(STARTS) if u.event == "agent_started"]
    assert sorted(shown) == sorted(f"🔧 Supervisor: Calling Agent {agent.title()}..." for agent in run.question.agents)


def test_all_that_starts_ends_well_and_inside_of_what_called_it(run: Run) -> None:
    opened: dict[str, Update] = {}
    for update in run.named(STARTS, ENDS):
        call = update.metadata["call_id"]
        if update.name == STARTS:
            assert call not in opened
            parent = update.metadata.get("parent_call_id")
            assert (parent in opened) == (update.event == "tool_started"), "a tool runs in its agent's delegation"
            opened[call] = update
        else:
            start = opened.pop(call)
            assert start.event.removesuffix("_started") == update.event.removesuffix("_finished")
            assert not [inner for inner in opened.values() if inner.metadata.get("parent_call_id") == call]
            assert update.text.startswith("✅ "), update.text
    assert opened == {}


def test_the_plan_comes_before_the_agents_and_is_done_at_the_end(run: Run) -> None:
    plans = run.named(*PLAN)
    assert [plan.name for plan in plans] == [PLAN[0]] + [PLAN[1]] * (len(plans) - 1)
    assert run.first(PLAN[0]) < run.first(STARTS)
    assert plans[0].text.startswith("⟦🎯 Execution Plan: ")
    assert {step["agent"] for step in plans[0].data[0]["steps"]} >= run.question.agents
    assert {step["status"] for step in plans[-1].data[0]["steps"]} == {"completed"}
    ids = [[step["id"] for step in plan.data[0]["steps"]] for plan in plans]
    assert all(earlier == later for earlier, later in pairwise(ids))


def test_narration_is_seen_before_the_tools(run: Run) -> None:
    final = run.named("final_result")[0]
    place = run.first("streaming_result")
    narration = run.updates[place].metadata["message_id"]
    assert place < run.first(STARTS)
    assert narration != final.metadata["answer_message_id"]
    assert len(run.message(narration).split()) > 3


def test_the_answer_streams_and_is_the_final_result(run: Run) -> None:
    (final,) = run.named("final_result")
    answer = final.metadata["answer_message_id"]
    assert final.text.strip()
    assert run.message(answer) == final.text
    pieces = [u for u in run.named("streaming_result") if u.metadata["message_id"] == answer]
    assert len(pieces) > 3, "the answer comes as it is written"
    places = [run.updates.index(piece) for piece in pieces]
    last_end = max(place for place, update in enumerate(run.updates) if update.name == ENDS)
    assert min(places) > last_end, "the answer is written from what was found"
    for words in run.question.answer:
        assert words in final.text


def test_it_begins_submitted_and_ends_completed(run: Run) -> None:
    assert [(u.kind, u.state) for u in run.updates[:2]] == [("task", "submitted"), ("status", "working")]
    assert (run.updates[-2].name, run.updates[-1].state) == ("final_result", "completed")
    assert [u.state for u in run.updates if u.kind == "status"] == ["working", "completed"]


def test_both_protocols_tell_the_same(supervisor: httpx.Client) -> None:
    def shown(version: Version) -> tuple[list[tuple[str, str]], str]:
        run = ask(supervisor, SUBNETS, version)
        notifications = [(update.name, update.text) for update in run.named(*PLAN, STARTS, ENDS)]
        return notifications, run.named("final_result")[0].text

    assert shown("0.3") == shown("1.0")


def test_what_is_looked_up_is_announced_searched_and_told_with_its_sources(
    supervisor: httpx.Client, version: Version
) -> None:
    run = ask(supervisor, HOW_TO, version)
    tools = [update.metadata["tool_name"] for update in run.named(STARTS)]
    assert tools[0] == "search"
    assert "fetch_document" in tools
    assert {update.agent for update in run.named(STARTS, ENDS)} == run.question.agents
    before = run.updates[: run.first(STARTS)]
    assert "search the knowledge base" in "".join(update.text for update in before if update.name == "streaming_result")
    (result,) = run.named("final_result")
    assert all(words in result.text for words in run.question.answer)
    assert run.updates[-1].state == "completed"
