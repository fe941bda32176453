"""The offline model with the built-in skills, over A2A: the sandbox's agents do the steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from starlette.applications import Starlette

from ai_platform_engineering.events import (
    AgentStarted,
    Event,
    Failed,
    FinalResult,
    InputRequired,
    PlanUpdated,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.invariants import check
from tests.servers import Caller, calling, serving


@pytest.fixture
async def supervisor(environ: dict[str, str]) -> AsyncIterator[Caller]:
    async with serving(create_app, {**environ, "SANDBOX": "true"}) as url, calling(url) as caller:
        yield caller


async def ask(caller: Caller, said: str | dict[str, Any], **options: Any) -> list[Event]:
    events = await caller.ask(said, **options)
    check(events)
    return events


def answer(events: Sequence[Event]) -> str:
    assert isinstance(events[-1], FinalResult)
    return events[-1].text


async def test_a_skill_that_is_called_by_name_is_followed_to_its_end(supervisor: Caller) -> None:
    events = await ask(supervisor, "/incident-triage payments-api")
    started = [event for event in events if isinstance(event, ToolStarted)]
    assert (started[0].agent, started[0].tool, started[0].skill) == ("supervisor", "read_skill", "incident-triage")
    plan = [event for event in events if isinstance(event, PlanUpdated)][-1]
    assert [(step.agent, step.status) for step in plan.steps] == [
        ("pagerduty", "completed"),
        ("pagerduty", "completed"),
        ("argocd", "completed"),
        ("argocd", "completed"),
        ("github", "completed"),
        ("jira", "completed"),
        (None, "completed"),
    ]
    reply = answer(events)
    assert reply.startswith("I followed the skill `incident-triage` for payments-api.")
    for evidence in ("**P4711**", "Priya Nair", "ImagePullBackOff", "7c1e5d2", "acme/payments-api#55", "SHOP-118"):
        assert evidence in reply
    assert "(the agent Kubernetes is not enabled)" in reply
    # What would change something is proposed only.
    assert "acknowledge_incident" not in [event.tool for event in started]
    assert "**Pagerduty**: Acknowledge the incident of payments-api" in reply


async def test_the_subject_is_asked_for_with_a_form(supervisor: Caller) -> None:
    events = await ask(supervisor, "use the incident-triage skill", context_id="c")
    assert isinstance(events[-1], InputRequired)
    assert [field.field_name for field in events[-1].forms[0].fields] == ["service"]
    resumed = await supervisor.ask({"resume": {"values": {"service": "checkout"}}}, task_id=supervisor.task_id)
    reply = answer(resumed)
    assert reply.startswith("I followed the skill `incident-triage` for checkout.")
    assert "P4708" in reply


async def test_questions_for_an_agent_read_no_skill(supervisor: Caller) -> None:
    asked = ("show argocd version", "list open incidents", "is checkout degraded?", "who is on call?")
    for events in await asyncio.gather(*(ask(supervisor, question) for question in asked)):
        assert [event.skill for event in events if isinstance(event, ToolStarted) and event.skill] == []
        assert len([event for event in events if isinstance(event, AgentStarted)]) == 1


async def test_an_agent_follows_the_skill_that_its_manifest_names(environ: dict[str, str]) -> None:
    def app(settings: Settings) -> Starlette:
        return create_agent_app(settings, "netutils")

    # No DNS server answers there, so every check fails at once, without leaving this machine.
    quick = {"NETUTILS_DNS_SERVER": "127.0.0.1:1", "NETUTILS_TIMEOUT": "0.1"}
    async with serving(app, environ | quick) as url, calling(url, "netutils") as netutils:
        events = await ask(netutils, "use the endpoint-check skill for shop.acme.example")
        plain = await ask(netutils, "how many hosts fit into 10.0.0.0/24?")
    finished = [(event.tool, event.ok) for event in events if isinstance(event, ToolFinished)]
    assert finished[0] == ("read_skill", True)
    assert {tool for tool, _ in finished[1:]} == {"dns_lookup", "check_port", "certificate_expiry", "http_check"}
    assert isinstance(events[-1], Failed)
    assert events[-1].message.startswith("I followed the skill `endpoint-check`.")
    assert [event.tool for event in plain if isinstance(event, ToolFinished)] == ["subnet_info"]
