"""What the offline model does as the supervisor: plan, delegate, answer."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage

from ai_platform_engineering.utils.llm.offline import OfflineChatModel
from tests.llm.offline_world import calls_of, run_supervisor

MODEL = OfflineChatModel()


@pytest.mark.parametrize(
    ("question", "agents"),
    [
        ("show argocd version", ["argocd"]),
        ("list my Jira tickets", ["jira"]),
        ("sync the guestbook app", ["argocd"]),
        ("create a Jira ticket for the checkout latency problem", ["jira"]),
        ("compare Jira and GitHub issues", ["github", "jira"]),
        ("compare the guestbook and the checkout apps", ["argocd", "argocd"]),
        ("status of guestbook and payments-api", ["argocd", "argocd"]),
        ("who is on call and which incidents are open?", ["pagerduty", "pagerduty"]),
    ],
)
def test_plan_then_parallel_delegations_then_answer(question: str, agents: list[str]) -> None:
    messages = run_supervisor(MODEL, question)
    turns = [message for message in messages if isinstance(message, AIMessage)]
    planning, delegating, answering = turns
    (plan,) = planning.tool_calls
    assert plan["name"] == "write_todos"
    assert planning.text
    assert [step["agent"] for step in plan["args"]["steps"] if step["agent"]] == agents
    assert [call["args"]["subagent_type"] for call in delegating.tool_calls] == agents
    assert not answering.tool_calls
    assert "offline model" in answering.text


def test_delegations_name_their_own_thing() -> None:
    calls = calls_of(run_supervisor(MODEL, "status of guestbook and payments-api"), "task")
    assert [arguments["description"] for _, arguments in calls] == ["status of guestbook", "status of payments-api"]
