from __future__ import annotations

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    Form,
    InputRequired,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.utils.runs.outcomes import START_OVER, explained, outcomes_of, report


def tool(call_id: str, agent: str, name: str, parent: str | None, ok: bool | None = None) -> list[Event]:
    ends = [] if ok is None else [ToolFinished(agent, name, call_id, ok, None if ok else "no", parent)]
    return [ToolStarted(agent, name, call_id, parent), *ends]


def test_what_is_reported_of_a_run() -> None:
    events: list[Event] = [
        AgentStarted("jira", "j"),
        AgentStarted("argocd", "a"),
        AgentStarted("weather", "w"),
        *tool("a1", "argocd", "get_application", "a", ok=True),
        *tool("j1", "jira", "create_issue", "j", ok=True),
        *tool("j2", "jira", "create_issue", "j", ok=True),
        *tool("j3", "jira", "add_comment", "j", ok=False),
        AgentFinished("weather", "w", True),
        *tool("a2", "argocd", "sync_application", "a"),
        *tool("s", "supervisor", "search", None),
    ]
    assert report(outcomes_of(events)) == (
        "Completed: Jira create_issue (2 times), Argocd get_application, Weather. Outcome unknown: the rest of Jira's "
        "work, Argocd sync_application, search. Check before asking again."
    )
    inside = outcomes_of(events, within="a")
    assert [call.call_id for call in inside.completed] == ["a1"]
    assert [call.call_id for call in inside.unknown] == ["a2"]


def test_what_waits_for_a_person_was_not_done() -> None:
    waiting: list[Event] = [
        AgentStarted("argocd", "a"),
        *tool("a1", "argocd", "rollback_application", "a"),
        InputRequired((Form("f", "Roll back?"),)),
    ]
    assert explained(Canceled(), waiting) == Canceled()
    assert explained(Failed("expired", "Ended."), waiting, START_OVER).message == "Ended. Ask again to start over."
    done = [*tool("j1", "jira", "create_issue", None, ok=True), *waiting]
    assert explained(Canceled(), done).message == (
        "Completed: Jira create_issue. Not done, because it waited for an answer: Argocd rollback_application. "
        "Check before asking again."
    )


def test_a_long_list_is_counted() -> None:
    events = [event for number in range(10) for event in tool(f"{number}", "jira", f"tool_{number}", None, ok=True)]
    assert "Jira tool_7 and 2 more. Check" in report(outcomes_of(events))
