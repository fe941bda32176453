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
from ai_platform_engineering.runs.outcomes import START_OVER, Outcomes, explained, outcomes_of, report, tool_names


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
    def named(count: int) -> str:
        calls = [event for n in range(count) for event in tool(f"{n}", "supervisor", f"tool_{n}", None, ok=True)]
        return report(outcomes_of(calls)).removeprefix("Completed: ").partition(".")[0]

    eight = ", ".join(f"tool_{number}" for number in range(8))
    assert named(8) == eight
    assert named(9) == f"{eight} and 1 more"
    assert named(10) == f"{eight} and 2 more"


def test_tools_that_only_show_a_form_or_read_instructions_have_no_outcome() -> None:
    names = ("request_user_input", "start_workflow", "read_skill", "search_skills")
    events = [event for name in names for event in tool(name, "supervisor", name, None, ok=True)]
    assert outcomes_of([*events, *tool("open", "jira", "read_skill", None)]) == Outcomes()
    assert explained(Failed("internal", "It broke. "), events).message == "It broke. "


def test_calls_have_the_order_of_their_delegations_and_a_lost_delegation_comes_first() -> None:
    events = [
        *tool("s", "supervisor", "search", None, ok=True),
        AgentStarted("jira", "j"),
        *tool("orphan", "argocd", "sync", "gone", ok=True),
        *tool("j1", "jira", "create_issue", "j", ok=True),
    ]
    assert [call.call_id for call in outcomes_of(events).completed] == ["s", "orphan", "j1"]


def test_tools_are_named_for_the_model_without_their_agent() -> None:
    assert tool_names([ToolStarted("jira", "search", "1"), AgentStarted("jira", "2")]) == "search, jira"
