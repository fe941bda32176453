"""What constrains a question is applied or named: asked over HTTP, checked against the sandbox's own tools."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Any

import pytest
import pytest_asyncio
from langchain_core.messages import AIMessageChunk, HumanMessage

from ai_platform_engineering.events import FinalResult
from ai_platform_engineering.manifest import McpServer, builtin_directory, load_manifests
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.offline_model import OfflineChatModel
from ai_platform_engineering.offline_model.english.time_ranges import PHRASE, parse_time_range
from ai_platform_engineering.settings import load_settings
from tests.invariants import check
from tests.llm.offline_world import argocd_tools, calls_of, run_agent, text, tool
from tests.servers import Caller, calling, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

Record = Mapping[str, Any]
AGENT_NAMES = ("argocd", "github", "jira", "pagerduty")
EVERYTHING: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "applications": ("argocd", "list_applications", {}),
    "deployments": ("argocd", "get_application_history", {"application": "payments-api"}),
    "tickets": ("jira", "search_issues", {"limit": 50}),
    "github issues": ("github", "list_issues", {"state": "all"}),
    "pull requests": ("github", "list_pull_requests", {"state": "all"}),
    "repositories": ("github", "list_repositories", {}),
    "incidents": ("pagerduty", "list_incidents", {"status": "all"}),
}


@dataclass
class Organization:
    caller: Caller
    servers: McpServers

    async def ask(self, question: str) -> str:
        ending = check(await self.caller.ask(question))
        assert isinstance(ending, FinalResult)
        return ending.text.split("\n\n_Answered by")[0]

    async def records(self, kind: str) -> list[Record]:
        agent, name, arguments = EVERYTHING[kind]
        called = next(item for item in self.servers.tools(agent) if item.name == name)
        result = json.loads(str(await called.ainvoke(arguments)))
        return list(next(value for value in result.values() if isinstance(value, list)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def organization(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Organization]:
    environ = {
        "DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "SANDBOX": "true",
        "OFFLINE_MODEL_DELAY": "0",
        "EMBEDDINGS_PROVIDER": "none",
    }
    manifests = load_manifests([builtin_directory()])
    servers = McpServers(load_settings(environ, env_file=None))
    sandboxes = {
        name: [McpServer(name=name, transport="memory", module=manifests[name].sandbox)] for name in AGENT_NAMES
    }
    await servers.start(sandboxes, deadline=30)
    async with serving(create_app, environ) as url, calling(url) as caller:
        yield Organization(caller, servers)
    await servers.aclose()


def is_listed(record: Record, answer: str) -> bool:
    if "number" in record:
        return f"| {record['repository']} | {record['number']} |" in answer or (
            f"- **{record['repository']}#{record['number']}**" in answer
        )
    name = next(record[key] for key in ("key", "name", "id", "repository") if key in record)
    return f"\n| {name} |" in answer or f"- **{name}**" in answer


def day(record: Record, field: str) -> str:
    return str(record[field])[:10]


APPLIED: list[tuple[str, str, Callable[[Record], bool]]] = [
    ("list high priority bugs", "tickets", lambda r: (r["priority"], r["type"]) == ("High", "Bug")),
    (
        "list open bugs with the highest priority",
        "tickets",
        lambda r: (r["priority"], r["type"]) == ("Highest", "Bug") and r["status"] != "Done",
    ),
    ("list stories", "tickets", lambda r: r["type"] == "Story"),
    ("which tickets are not done?", "tickets", lambda r: r["status"] != "Done"),
    ("closed Jira tickets", "tickets", lambda r: r["status"] == "Done"),
    ("Jira tickets that are not open", "tickets", lambda r: r["status"] == "Done"),
    ("which tickets are not assigned to tom?", "tickets", lambda r: r["assignee"] != "Tom Becker"),
    ("Jira tickets without an assignee", "tickets", lambda r: not r["assignee"]),
    ("list lena's Jira tickets", "tickets", lambda r: r["assignee"] == "Lena Fischer"),
    ("Jira tickets created since monday", "tickets", lambda r: day(r, "created") >= "2026-04-06"),
    ("which Jira tickets were updated yesterday?", "tickets", lambda r: day(r, "updated") == "2026-04-07"),
    ("which applications are not degraded?", "applications", lambda r: r["health"] != "Degraded"),
    ("apps that are not healthy", "applications", lambda r: r["health"] != "Healthy"),
    ("apps that are degraded or progressing", "applications", lambda r: r["health"] in {"Degraded", "Progressing"}),
    ("list apps except guestbook and checkout", "applications", lambda r: r["name"] not in {"guestbook", "checkout"}),
    (
        "which apps in the platform project are out of sync?",
        "applications",
        lambda r: (r["project"], r["sync_status"]) == ("platform", "OutOfSync"),
    ),
    (
        "deployments of payments-api in the last 3 days",
        "deployments",
        lambda r: day(r, "deployed_at") >= "2026-04-05",
    ),
    ("which incidents were there last week?", "incidents", lambda r: "2026-03-30" <= day(r, "created") <= "2026-04-05"),
    ("low urgency incidents", "incidents", lambda r: r["urgency"] == "low" and r["status"] != "resolved"),
    ("triggered or acknowledged incidents", "incidents", lambda r: r["status"] in {"triggered", "acknowledged"}),
    ("unresolved incidents", "incidents", lambda r: r["status"] != "resolved"),
    (
        "show incidents from the last 2 days that are not resolved",
        "incidents",
        lambda r: day(r, "created") >= "2026-04-07" and r["status"] != "resolved",
    ),
    ("unassigned github issues", "github issues", lambda r: not r["assignee"] and r["state"] == "open"),
    ("github issues that are not open", "github issues", lambda r: r["state"] == "closed"),
    (
        "merged pull requests from yesterday",
        "pull requests",
        lambda r: r["state"] == "merged" and day(r, "updated") == "2026-04-07",
    ),
    ("which PRs has tom opened?", "pull requests", lambda r: r["author"] == "tom" and r["state"] == "open"),
    ("public repositories", "repositories", lambda r: r["visibility"] == "public"),
    ("list Go repositories", "repositories", lambda r: r.get("language") == "Go"),
]


@pytest.mark.parametrize(("question", "kind", "is_wanted"), APPLIED, ids=[question for question, *_ in APPLIED])
async def test_exactly_what_meets_the_constraints_is_listed(
    organization: Organization, question: str, kind: str, is_wanted: Callable[[Record], bool]
) -> None:
    answer = await organization.ask(question)
    records = await organization.records(kind)
    assert any(map(is_wanted, records)), "a question that nothing answers shows nothing"
    assert not all(map(is_wanted, records)), "a question that everything answers shows nothing"
    assert [r for r in records if is_listed(r, answer)] == [r for r in records if is_wanted(r)], answer
    assert "did not apply" not in answer


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("list blocked Jira tickets", "“blocked”"),
        ("my open Jira tickets due this week", "“this week”"),
        ("stale pull requests", "“stale”"),
        ("who was on call last week?", "“last week”"),
        ("incidents resolved last week", "“last week”"),
        ("repositories with more than 5 stars", "“with more than 5 stars”"),
        ("list the Jira tickets per reporter", "“per reporter”"),
        ("apps that are not flaky", "“that are not flaky”"),
    ],
)
async def test_what_the_results_cannot_tell_is_named(organization: Organization, question: str, phrase: str) -> None:
    answer = await organization.ask(question)
    assert phrase in answer.rpartition("I did not apply ")[2]


async def test_order_and_count_are_applied_after_the_filters(organization: Organization) -> None:
    answer = await organization.ask("list the 3 oldest open Jira tickets")
    open_ones = [r for r in await organization.records("tickets") if r["status"] != "Done"]
    oldest = sorted(open_ones, key=lambda r: str(r["created"]))[:3]
    rows = [line for line in answer.splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[0] for row in rows] == [f"| {r['key']}" for r in oldest]


@pytest.mark.parametrize(
    "question",
    [
        "sync guestbook tomorrow",
        "sync guestbook if it is healthy",
        "sync guestbook at 5pm",
        "sync guestbook in 2 hours",
    ],
)
async def test_a_change_that_is_to_wait_is_not_made(organization: Organization, question: str) -> None:
    before = await organization.records("applications")
    assert f"Not done: “{question}”" in await organization.ask(question)
    assert await organization.records("applications") == before


@pytest.mark.parametrize(
    ("question", "summary"),
    [
        ("create a bug for the broken cart and assign it to lena", "Broken cart"),
        ("create a Jira bug assigned to lena about the slow search", "Slow search"),
        ("create a Jira bug: login fails, assign it to lena", "login fails"),
    ],
)
async def test_a_new_ticket_has_the_assignee_that_was_asked_for(
    organization: Organization, question: str, summary: str
) -> None:
    before = {record["key"] for record in await organization.records("tickets")}
    answer = await organization.ask(question)
    (made,) = [record for record in await organization.records("tickets") if record["key"] not in before]
    assert (made["summary"], made["type"], made["assignee"]) == (summary, "Bug", "Lena Fischer")
    assert made["key"] in answer
    assert "did not apply" not in answer


async def test_what_no_argument_and_no_tool_serves_is_said_after_a_change() -> None:
    messages = run_agent(OfflineChatModel(), "jira", "create a ticket for the login page and assign it to priya")
    assert calls_of(messages) == [("create_issue", {"summary": "Login page"})]
    assert "Not done: “assign it to priya”" in str(messages[-1].text)


async def test_an_excepted_thing_is_never_changed() -> None:
    messages = run_agent(OfflineChatModel(), "argocd", "sync all apps except guestbook")
    assert "sync_application" not in [name for name, _ in calls_of(messages)]


NOW = datetime(2026, 4, 8, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("phrase", "meant"),
    [
        ("last week", "2026-03-30 to 2026-04-05"),
        ("this week", "2026-04-06 to 2026-04-12"),
        ("in the last week", "since 2026-04-01 09:30 UTC"),
        ("yesterday", "2026-04-07"),
        ("since Monday", "since 2026-04-06"),
        ("last Wednesday", "2026-04-01"),
        ("in the last 3 days", "since 2026-04-05 09:30 UTC"),
        ("in the past 24 hours", "since 2026-04-07 09:30 UTC"),
        ("this month", "2026-04-01 to 2026-04-30"),
        ("last month", "2026-03-01 to 2026-03-31"),
        ("last quarter", "2026-01-01 to 2026-03-31"),
        ("last year", "2025-01-01 to 2025-12-31"),
        ("in December", "2025-12-01 to 2025-12-31"),
        ("last weekend", "2026-04-04 to 2026-04-05"),
        ("on 2 April", "2026-04-02"),
        ("before April 3rd", "before 2026-04-03"),
        ("after 2026-04-03", "since 2026-04-04"),
        ("between 1 April and 3 April", "2026-04-01 to 2026-04-03"),
        ("older than 30 days", "before 2026-03-09 09:30 UTC"),
        ("a couple of days ago", "2026-04-06"),
    ],
)
async def test_what_a_phrase_means_on_a_given_day(phrase: str, meant: str) -> None:
    found = PHRASE.search(f"which incidents were there {phrase}?")
    assert found is not None
    assert found.group() == phrase
    assert str(parse_time_range(phrase, NOW)) == meant


async def test_a_date_that_does_not_exist_means_nothing() -> None:
    assert parse_time_range("on 31 February", NOW) is None


async def test_a_tool_that_takes_times_is_given_them_and_called_once_while_the_clock_goes_on() -> None:
    minutes = iter(range(60))
    model = OfflineChatModel(clock=lambda: NOW.replace(minute=next(minutes)))
    properties = {"since": text("Start, as an ISO 8601 time"), "until": text("End, as an ISO 8601 time")}
    listing = tool("list_alerts", "List alerts.", properties, lambda since=None, until=None: [{"id": "A1"}])
    assert calls_of(run_agent(model, "pagerduty", "list alerts of last week", [listing])) == [
        ("list_alerts", {"since": "2026-03-30T00:00:00Z", "until": "2026-04-06T00:00:00Z"})
    ]
    assert len(calls_of(run_agent(model, "pagerduty", "list alerts of the last 2 hours", [listing]))) == 1


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("delete the guestbook app", "no tool fits the request"),
        ("sync guestbook tomorrow", "I can neither wait nor check conditions, so not “tomorrow”"),
        ("sync the nosuchapp app", "sync_application failed"),
        ("sync it", "sync_application needs more than the request says"),
    ],
)
async def test_an_agent_that_did_nothing_says_so_once_also_when_it_streams(question: str, reason: str) -> None:
    messages = run_agent(OfflineChatModel(), "argocd", question)
    model = OfflineChatModel().bind_tools(argocd_tools())
    chunks = [chunk for chunk in model.stream(messages[:-1]) if isinstance(chunk, AIMessageChunk)]
    assert reduce(add, chunks).response_metadata["not_done"] == reason  # type: ignore[attr-defined]
    assert messages[-1].response_metadata["not_done"] == reason


async def test_an_agent_that_did_something_does_not() -> None:
    for question in ("show argocd version", "which applications are not flaky?"):
        assert "not_done" not in run_agent(OfflineChatModel(), "argocd", question)[-1].response_metadata


async def test_an_answer_of_any_length_streams_within_its_time_and_nothing_else_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    sleep, this_task = asyncio.sleep, asyncio.current_task()

    async def noted(seconds: float) -> None:
        if asyncio.current_task() is this_task:
            pauses.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    model = OfflineChatModel(answer_time=0.2)
    long_answer = run_agent(OfflineChatModel(), "argocd", "list applications")[:-1]
    started = time.perf_counter()
    chunks = [chunk async for chunk in model.bind_tools(argocd_tools()).astream(long_answer)]
    assert len(chunks) > 40
    assert time.perf_counter() - started > 0.15
    assert sum(pauses) <= 0.2
    pauses.clear()
    async for _ in model.bind_tools(argocd_tools()).astream([HumanMessage("list applications")]):
        pass
    assert sum(pauses) == 0
