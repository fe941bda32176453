"""What the offline model does as the supervisor: plan, delegate, answer."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ai_platform_engineering.offline_model import OfflineChatModel
from tests.llm.offline_world import AGENTS, calls_of, run_supervisor, supervisor_tools, text, tool

MODEL = OfflineChatModel()


def requests_of(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    """(agent, request) of every delegation, without the context that goes along."""
    return [
        (arguments["subagent_type"], arguments["description"].split("\n\nContext:")[0])
        for _, arguments in calls_of(messages, "task")
    ]


def answer_of(messages: list[BaseMessage]) -> str:
    return str(messages[-1].text)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("show argocd version", [("argocd", "show argocd version")]),
        ("list my Jira tickets", [("jira", "list my Jira tickets")]),
        ("sync the guestbook app", [("argocd", "sync the guestbook app")]),
        (
            "create a Jira ticket for the checkout latency problem",
            [("jira", "create a Jira ticket for the checkout latency problem")],
        ),
        ("compare Jira and GitHub issues", [("jira", "show Jira issues"), ("github", "show GitHub issues")]),
        ("issues in jira and github", [("jira", "issues in jira"), ("github", "show github issues")]),
        (
            "compare the guestbook and the checkout apps",
            [("argocd", "show the guestbook app"), ("argocd", "show the checkout app")],
        ),
        (
            "status of guestbook and payments-api",
            [("argocd", "status of guestbook"), ("argocd", "status of payments-api")],
        ),
        (
            "who is on call and which incidents are open?",
            [("pagerduty", "who is on call"), ("pagerduty", "which incidents are open?")],
        ),
        (
            "list jira tickets, github pull requests and open incidents",
            [("jira", "list jira tickets"), ("github", "list github pull requests"), ("pagerduty", "open incidents")],
        ),
        (
            "show the payments-api app, its tickets and its incidents",
            [
                ("argocd", "show the payments-api app"),
                ("jira", "show the tickets of payments-api"),
                ("pagerduty", "show the incidents of payments-api"),
            ],
        ),
        ("create a Jira ticket about the GitHub outage", [("jira", "create a Jira ticket about the GitHub outage")]),
        ("show SHOP-118", [("jira", "show SHOP-118")]),
        ("is port 443 open on example.com?", [("netutils", "is port 443 open on example.com?")]),
        ("show ArgoCD version", [("argocd", "show ArgoCD version")]),
        ("show Argo CD version", [("argocd", "show Argo CD version")]),
        (
            "sync guestbook, checkout and monitoring",
            [("argocd", f"sync {name}") for name in ("guestbook", "checkout", "monitoring")],
        ),
    ],
)
def test_who_is_asked_what(question: str, expected: list[tuple[str, str]]) -> None:
    assert requests_of(run_supervisor(MODEL, question)) == expected


def test_a_turn_for_the_plan_a_turn_for_all_delegations_a_turn_for_the_answer() -> None:
    messages = run_supervisor(MODEL, "compare Jira and GitHub issues")
    planning, delegating, answering = [message for message in messages if isinstance(message, AIMessage)]
    (plan,) = planning.tool_calls
    assert plan["name"] == "write_todos"
    assert plan["args"] == {
        "title": "Compare Jira and GitHub issues",
        "steps": [
            {"content": "Show Jira issues", "agent": "jira", "status": "pending"},
            {"content": "Show GitHub issues", "agent": "github", "status": "pending"},
            {"content": "Compare the results", "agent": None, "status": "pending"},
        ],
    }
    assert planning.text == (
        "I'll ask Jira to show Jira issues and, at the same time, Github to show GitHub issues, "
        "then compare the results."
    )
    assert [call["name"] for call in delegating.tool_calls] == ["task", "task"]
    assert delegating.text == ""
    assert answering.tool_calls == []


@pytest.mark.parametrize(
    ("question", "narration"),
    [
        ("could you please sync the guestbook app?", "I'll ask Argocd to sync the guestbook app."),
        ("who is on call?", "I'll ask Pagerduty who is on call."),
        ("sync status of guestbook", "I'll ask Argocd about “sync status of guestbook”."),
    ],
)
def test_the_narration_is_about_the_request(question: str, narration: str) -> None:
    first = next(message for message in run_supervisor(MODEL, question) if isinstance(message, AIMessage))
    assert first.text == narration


def test_one_result_is_the_answer_and_it_says_who_wrote_it() -> None:
    answer = answer_of(run_supervisor(MODEL, "show argocd version"))
    assert answer.startswith("Version:\n\n- **Version:** v3.1.8+becb020\n")
    assert answer.endswith(
        "\n\n_Answered by the offline model, which matches words and does not reason. "
        "Set `LLM_PROVIDER` to use a language model._"
    )


def test_several_results_get_a_section_each() -> None:
    answer = answer_of(run_supervisor(MODEL, "compare Jira and GitHub issues"))
    assert answer.startswith("Jira: 3 issues; Github: 2 issues.\n\n### Jira\n\n3 issues:\n\n| Key |")
    assert "\n\n### Github\n\n2 issues:\n\n| Repository |" in answer
    assert "{" not in answer


def test_facts_are_compared_side_by_side() -> None:
    answer = answer_of(run_supervisor(MODEL, "compare the guestbook and the checkout apps"))
    assert answer.startswith("They differ in name, sync status.\n\n|  | guestbook | checkout |\n")
    assert "| Sync status | OutOfSync | Synced |" in answer


def test_a_failed_delegation_is_named_beside_the_ones_that_worked() -> None:
    messages = run_supervisor(MODEL, "compare Jira and GitHub issues")
    failed = [
        message.model_copy(update={"status": "error", "content": "Github could not be reached within 4 s."})
        if isinstance(message, ToolMessage) and "Repository" in str(message.text)
        else message
        for message in messages[:-1]
    ]
    reply = MODEL.bind_tools(supervisor_tools()).invoke(failed)
    assert "### Github\n\nGithub could not do this: Github could not be reached within 4 s." in reply.text
    assert "### Jira\n\n3 issues" in reply.text


@pytest.mark.parametrize("question", ["what's the weather in Paris?", "book me a flight", "42", "¿qué tal?"])
def test_a_request_no_agent_serves_is_refused_with_what_can_be_done(question: str) -> None:
    messages = run_supervisor(MODEL, question)
    assert calls_of(messages) == []
    assert answer_of(messages).startswith("None of my agents can serve this request.")
    for name, (line, _) in AGENTS.items():
        assert f"- **{name.title()}**: {line.split(' (keywords')[0]}" in answer_of(messages)


@pytest.mark.parametrize("question", ["hi", "Hello there!", "what can you do?", "help", "thanks a lot", ""])
def test_small_talk_gets_a_short_answer_with_what_can_be_done(question: str) -> None:
    messages = run_supervisor(MODEL, question)
    assert calls_of(messages) == []
    assert "- **Pagerduty**: PagerDuty incidents and on-call schedules." in answer_of(messages)


def test_an_agent_without_tools_is_not_asked_and_the_reason_is_given() -> None:
    problems = {"jira": "the server did not start within 10 s"}
    alone = run_supervisor(MODEL, "list my Jira tickets", problems=problems)
    assert calls_of(alone) == []
    assert "Jira would serve this, but has no tools: the server did not start within 10 s" in answer_of(alone)
    both = run_supervisor(MODEL, "compare Jira and GitHub issues", problems=problems)
    assert requests_of(both) == [("github", "show GitHub issues")]
    assert "Jira could not be asked: the server did not start within 10 s" in answer_of(both)


@pytest.mark.parametrize(
    ("conversation", "expected"),
    [
        (
            ["list argocd applications", "and which of them are out of sync?"],
            ("argocd", "which of the argocd applications are out of sync?"),
        ),
        (["which applications are out of sync?", "sync the first one"], ("argocd", "sync guestbook")),
        (
            ["which applications are out of sync?", "tell me more about the second one"],
            ("argocd", "tell me more about monitoring"),
        ),
        (["which applications are out of sync?", "and the degraded ones?"], ("argocd", "the degraded applications?")),
        (["show the guestbook app", "what about payments-api?"], ("argocd", "show the payments-api app")),
        (["sync the guestbook app", "what about payments-api?"], ("argocd", "show payments-api")),
        (["show the guestbook app", "sync it"], ("argocd", "sync guestbook")),
        (
            ["show the payments-api app", "is there an incident for it?"],
            ("pagerduty", "is there an incident for payments-api?"),
        ),
        (["show the payments-api app", "more details"], ("argocd", "show details of payments-api")),
        (["list my Jira tickets", "move the first one to Done"], ("jira", "move PLAT-41 to Done")),
        (
            ["create a Jira ticket for slow search", "comment on it: it is the index"],
            ("jira", "comment on SHOP-120: it is the index"),
        ),
        (["list the GitHub issues", "show the last one"], ("github", "show payments-api#57")),
        (["who is on call?", "again"], ("pagerduty", "who is on call?")),
        (["which incidents are open?", "what does P4708 say?"], ("pagerduty", "what does P4708 say?")),
        (["show the guestbook app", "who is on call?"], ("pagerduty", "who is on call?")),
    ],
)
def test_a_follow_up_is_resolved_against_the_conversation(conversation: list[str], expected: tuple[str, str]) -> None:
    history: list[BaseMessage] = []
    for question in conversation:
        before = len(requests_of(history))
        history = run_supervisor(MODEL, question, history)
    assert requests_of(history)[before:] == [expected]


def test_all_that_were_listed_can_be_changed_one_by_one() -> None:
    history = run_supervisor(MODEL, "which applications are out of sync?")
    history = run_supervisor(MODEL, "sync them", history)
    assert requests_of(history)[1:] == [("argocd", "sync guestbook"), ("argocd", "sync monitoring")]


def test_a_part_that_needs_the_result_of_another_waits_for_it() -> None:
    messages = run_supervisor(MODEL, "which app is degraded? create a jira ticket for it")
    turns = [calls for message in messages if isinstance(message, AIMessage) and (calls := message.tool_calls)]
    assert [[call["name"] for call in calls] for calls in turns] == [["write_todos"], ["task"], ["task"]]
    assert requests_of(messages) == [
        ("argocd", "which app is degraded?"),
        ("jira", "create a jira ticket for payments-api"),
    ]
    assert "Created issue **SHOP-120**." in answer_of(messages)


def test_what_never_became_clear_is_said_to_be_undone() -> None:
    messages = run_supervisor(MODEL, "which app is suspended? create a jira ticket for it")
    assert requests_of(messages) == [("argocd", "which app is suspended?")]
    assert "No applications found (health Suspended)." in answer_of(messages)
    assert "Not done: create a jira ticket for it." in answer_of(messages)


def test_without_a_plan_tool_the_narration_goes_with_the_delegations() -> None:
    delegation_only = [item for item in supervisor_tools() if item.name == "task"]
    reply = MODEL.bind_tools(delegation_only).invoke([HumanMessage("show argocd version")])
    assert reply.text == "I'll ask Argocd to show argocd version."
    assert [call["name"] for call in reply.tool_calls] == ["task"]


def test_the_supervisors_own_tools_serve_what_no_agent_does() -> None:
    search = tool(
        "search", "Search the team's documents.", {"query": text("What to look for")}, str, required=["query"]
    )
    model = MODEL.bind_tools([*supervisor_tools(), search])
    messages: list[BaseMessage] = [HumanMessage("what is our vacation rule?")]
    reply = model.invoke(messages)
    assert calls_of([reply]) == [("search", {"query": "vacation rule"})]
    result = ToolMessage("Thirty days a year.", tool_call_id=str(reply.tool_calls[0]["id"]))
    assert model.invoke([*messages, reply, result]).text.startswith("Thirty days a year.\n\n_Answered by")


def test_the_last_turn_without_tools_answers_from_what_was_gathered() -> None:
    messages = run_supervisor(MODEL, "compare Jira and GitHub issues")
    cut = [
        message
        for message in messages[:-1]
        if not (isinstance(message, ToolMessage) and "Repository" in str(message.text))
    ]
    reply = MODEL.invoke([*cut, HumanMessage("You have used all your steps. Answer now.")])
    assert reply.tool_calls == []
    assert "| SHOP-118 |" in reply.text
    assert "Not done: Show GitHub issues." in reply.text
    assert "used all your steps" not in reply.text


def test_the_last_turn_can_come_before_anything_was_gathered() -> None:
    messages: list[BaseMessage] = [HumanMessage("show argocd version")]
    reply = MODEL.invoke([*messages, HumanMessage("You have used all your steps. Answer now.")])
    assert reply.text == "I had to stop before anything was gathered."
    planned = MODEL.bind_tools(supervisor_tools()).invoke(messages)
    written = ToolMessage("The plan is written.", tool_call_id=str(planned.tool_calls[0]["id"]))
    reply = MODEL.invoke([*messages, planned, written, HumanMessage("You have used all your steps. Answer now.")])
    assert reply.text.startswith("Not done: Show argocd version.")
