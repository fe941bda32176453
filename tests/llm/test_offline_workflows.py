"""What the offline model does with workflows: which it starts, with what, and how it tells the end."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ai_platform_engineering.offline_model import OfflineChatModel
from tests.llm.offline_world import argocd_tools, calls_of, form_tool, run_agent, supervisor_tools, workflow_tool

MODEL = OfflineChatModel()
PROMPT = SystemMessage("""\
You are the supervisor.

Workflows (start one with `start_workflow` when someone wants what it does):
- create_github_repo: Create GitHub Repo. Creates a GitHub repository in the organisation. \
(keywords: repo, repository, github, create, new; inputs: repository, description, private)
- escalate_incident: Escalate Incident. Escalates a PagerDuty incident and opens a Jira ticket that follows it. \
(keywords: escalate, escalation, incident, pagerduty; inputs: incident, reason, priority)
- onboard_service: Onboard Service. Sets up a new service - a GitHub repository, an Argo CD application and a Jira \
ticket that says so. (keywords: onboard, onboarding, service, new service; \
inputs: service, description, project, private, ticket_project)
- refresh_everything: Refresh Everything. Fetches all states again.
- roll_back_application: Roll Back Application. Rolls an Argo CD application back to an earlier deployment. \
(keywords: rollback, roll back, revert, undo, application, deployment; \
inputs: application, revision, reason, ticket, new_ticket)

Be exact.
- no_workflow: This line is no workflow. (keywords: sync)""")
SUPERVISOR = MODEL.bind_tools([*supervisor_tools(), workflow_tool(), form_tool()])


def ask(question: str, *history: BaseMessage) -> AIMessage:
    reply = SUPERVISOR.invoke([PROMPT, *history, HumanMessage(question)])
    assert isinstance(reply, AIMessage)
    return reply


@pytest.mark.parametrize(
    ("question", "name", "values"),
    [
        ("please create a github repo called demo", "create_github_repo", {"repository": "demo"}),
        ("create a GitHub repository named demo", "create_github_repo", {"repository": "demo"}),
        (
            'Create a private github repo called "demo-site"',
            "create_github_repo",
            {"repository": "demo-site", "private": True},
        ),
        (
            "set up a public github repository called demo with description: For demos",
            "create_github_repo",
            {"repository": "demo", "description": "For demos", "private": False},
        ),
        ("create a github repo called jira-sync", "create_github_repo", {"repository": "jira-sync"}),
        ("make a new repository on github", "create_github_repo", {}),
        ("I need a new github repo", "create_github_repo", {}),
        ("we'd like a repo called x1", "create_github_repo", {"repository": "x1"}),
        ("create a repo demo", "create_github_repo", {"repository": "demo"}),
        ("create a new python repo", "create_github_repo", {}),
        ("can you create a repo for me?", "create_github_repo", {}),
        ("onboard a new service", "onboard_service", {}),
        ("Onboard a service called ledger", "onboard_service", {"service": "ledger"}),
        (
            "onboard service ledger in the ticket project PLAT",
            "onboard_service",
            {"service": "ledger", "ticket_project": "PLAT"},
        ),
        ("onboard the ledger service, project: shop", "onboard_service", {"service": "ledger", "project": "shop"}),
        ("could you help me onboard a new service, please?", "onboard_service", {}),
        ("Hi, please onboard a new service!", "onboard_service", {}),
        ("I want to roll back payments-api", "roll_back_application", {"application": "payments-api"}),
        ("roll checkout back", "roll_back_application", {"application": "checkout"}),
        ("roll back the checkout app", "roll_back_application", {"application": "checkout"}),
        (
            "roll back payments-api to revision 2 because it crashes",
            "roll_back_application",
            {"application": "payments-api", "revision": "2", "reason": "it crashes"},
        ),
        (
            "roll back checkout with a new ticket",
            "roll_back_application",
            {"application": "checkout", "new_ticket": True},
        ),
        (
            "roll back checkout for ticket SHOP-118 without a new ticket",
            "roll_back_application",
            {"application": "checkout", "ticket": "SHOP-118", "new_ticket": False},
        ),
        ("do a rollback of payments-api", "roll_back_application", {"application": "payments-api"}),
        ("revert payments-api", "roll_back_application", {"application": "payments-api"}),
        ("escalate incident P4711", "escalate_incident", {"incident": "P4711"}),
        (
            "escalate P4711 with high priority",
            "escalate_incident",
            {"incident": "P4711", "priority": "high"},
        ),
        ("escalate the payments-api incident", "escalate_incident", {}),
        ("start the onboard service workflow", "onboard_service", {}),
        ("run the escalation workflow for P4711", "escalate_incident", {"incident": "P4711"}),
        ("run refresh everything", "refresh_everything", {}),
    ],
)
def test_a_workflow_is_started_with_what_the_request_says(question: str, name: str, values: dict[str, Any]) -> None:
    reply = ask(question)
    assert calls_of([reply]) == [("start_workflow", {"name": name, "values": values})]
    assert reply.text.startswith("I'll start the workflow “")


@pytest.mark.parametrize(
    "question",
    [
        "list my repos",
        "show the github repositories",
        "I want a list of repos",
        "search for repos",
        "what is the history of payments-api",
        "show the rollback history of checkout",
        "rollback status of payments-api",
        "rollbacks of payments-api this week",
        "was payments-api rolled back?",
        "should I roll back payments-api?",
        "do not roll back payments-api",
        "don't onboard a service",
        "how do I onboard a service?",
        "what does onboard service do?",
        "which workflows are there?",
        "describe the create github repo workflow",
        "which incidents were escalated?",
        "acknowledge incident P4711",
        "create a Jira ticket for the checkout latency problem",
        "create a Jira ticket for the new github repo",
        "create a Jira ticket for the rollback of payments-api",
        "create a github issue in the payments-api repo",
        "create an issue about the repo",
        "create a pull request in the repo",
        "revert pull request 12",
        "roll back the database",
        "roll back payments-api and create a jira ticket for it",
        "onboard a new developer",
        "escalate SHOP-118",
        "sync the guestbook app",
        "compare Jira and GitHub issues",
        "create demo",
        "create a file",
        "create a new log",
        "hello",
        "",
    ],
)
def test_whatever_else_is_said_of_the_same_things_is_answered_as_without_workflows(question: str) -> None:
    plain = MODEL.bind_tools(supervisor_tools()).invoke([HumanMessage(question)])
    reply = ask(question)
    assert calls_of([reply]) == calls_of([plain])
    assert reply.text == plain.text


def test_workflows_are_started_only_with_the_tool_and_only_those_described() -> None:
    question = HumanMessage("please create a github repo called demo")
    without_tool = MODEL.bind_tools(supervisor_tools()).invoke([PROMPT, question])
    assert [name for name, _ in calls_of([without_tool])] == ["write_todos"]
    undescribed = SUPERVISOR.invoke([SystemMessage("You are the supervisor."), question])
    assert [name for name, _ in calls_of([undescribed])] == ["write_todos"]


def test_an_agent_starts_no_workflow() -> None:
    messages = run_agent(MODEL, "argocd", "start a workflow", [*argocd_tools(), workflow_tool()])
    assert calls_of(messages, "start_workflow") == []


def test_what_the_request_points_at_is_filled_in() -> None:
    history = [HumanMessage("show the payments-api app"), AIMessage("Application **payments-api**: degraded.")]
    assert calls_of([ask("roll it back", *history)]) == [
        ("start_workflow", {"name": "roll_back_application", "values": {"application": "payments-api"}})
    ]


def _started(question: str, result: str, status: str = "success") -> list[BaseMessage]:
    reply = ask(question)
    content = ToolMessage(result, tool_call_id=str(reply.tool_calls[0]["id"]), status=status)
    return [PROMPT, HumanMessage(question), reply, content]


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (
            "The person canceled the form.",
            "The form “Create GitHub Repo” was canceled, so nothing was done.",
        ),
        (
            "The person canceled the form: wrong team. The workflow Create GitHub Repo was not started.",
            "The form “Create GitHub Repo” was canceled (wrong team), so nothing was done.",
        ),
        (
            "The person canceled the form. The workflow Create GitHub Repo was not started; nothing was done.",
            "The form “Create GitHub Repo” was canceled, so nothing was done.",
        ),
    ],
)
def test_a_canceled_form_is_reported_in_one_sentence(result: str, answer: str) -> None:
    reply = SUPERVISOR.invoke(_started("create a github repo", result))
    assert reply.tool_calls == []
    assert reply.text.startswith(f"{answer}\n\n_Answered by the offline model")


def test_a_canceled_form_of_a_workflow_that_was_started_by_its_name() -> None:
    call = {"name": "start_workflow", "args": {"name": "onboard_service", "values": {}}, "id": "workflow-1"}
    content = ToolMessage("The person canceled the form.", tool_call_id="workflow-1")
    messages = [PROMPT, HumanMessage("Onboard Service"), AIMessage("", tool_calls=[call]), content]
    assert SUPERVISOR.invoke(messages).text.startswith("The form “Onboard Service” was canceled, so nothing was done.")


def test_a_workflow_that_could_not_be_started() -> None:
    messages = _started("onboard a new service", "There is no workflow 'onboard_service'.", "error")
    reply = SUPERVISOR.invoke(messages)
    assert reply.tool_calls == []
    assert reply.text.startswith("The workflow “Onboard Service” was not started: There is no workflow")


def _ended(instruction: str, *results: tuple[str, str]) -> str:
    """The answer after a workflow whose delegations gave these results."""
    messages = _started("onboard a service called ledger", "The workflow Onboard Service has started.")
    plan = {"title": "Onboard Service", "steps": [{"content": "Create the repository", "agent": "github"}]}
    calls = [("write_todos", plan), *(("task", {"description": "...", "subagent_type": "x"}) for _ in results)]
    outcomes = [("The plan has 3 steps.", "success"), *results]
    for number, ((name, arguments), (content, status)) in enumerate(zip(calls, outcomes, strict=True)):
        call = {"name": name, "args": arguments, "id": f"workflow-{number}"}
        messages += [
            AIMessage("", tool_calls=[call]),
            ToolMessage(content, tool_call_id=f"workflow-{number}", status=status),
        ]
    reply = MODEL.invoke([*messages, HumanMessage(f"{instruction}\nWrite the answer for the person now.")])
    assert isinstance(reply, AIMessage)
    assert reply.tool_calls == []
    answer, _, signature = str(reply.text).partition("\n\n_Answered by")
    assert signature
    return answer


def test_the_end_of_a_workflow_is_reported_step_by_step() -> None:
    answer = _ended(
        "The workflow Onboard Service has ended. What became of its steps:\n"
        "- Create the repository (github): completed, url: https://github.example/acme/ledger\n"
        "- Tell the team (webex): skipped, it was not asked for\n"
        "- Open a ticket (jira): completed, key: SHOP-121",
        ('{"name": "ledger", "url": "https://github.example/acme/ledger"}', "success"),
        ("Created issue **SHOP-121**.", "success"),
    )
    assert answer == (
        "The workflow “Onboard Service” is done.\n\n"
        "### Create the repository\n\n- **Name:** ledger\n- **URL:** https://github.example/acme/ledger\n\n"
        "### Open a ticket\n\nCreated issue **SHOP-121**.\n\n"
        "Skipped: Tell the team (it was not asked for)."
    )


def test_a_failed_step_and_the_steps_after_it_are_reported() -> None:
    answer = _ended(
        "The workflow Onboard Service was stopped because a step failed. What became of its steps:\n"
        "- Create the repository (github): completed\n"
        "- Create the application (argocd): failed: rejected by a person: not today\n"
        "- Open a ticket (jira): not done, because an earlier step failed",
        ('{"name": "ledger"}', "success"),
        ("A person rejected this call: not today", "error"),
    )
    assert answer == (
        "The workflow “Onboard Service” was stopped: the step “Create the application” failed.\n\n"
        "### Create the repository\n\n- **Name:** ledger\n\n"
        "### Create the application\n\nFailed: rejected by a person: not today.\n\n"
        "Not done: Open a ticket (because an earlier step failed)."
    )


def test_a_result_without_its_required_values_is_not_reported_as_done() -> None:
    answer = _ended(
        "The workflow Onboard Service was stopped because a step failed. What became of its steps:\n"
        "- Create the repository (github): failed: create_repository finished, but its result has no url",
        ('{"name": "ledger"}', "success"),
    )
    assert answer.endswith("\n\nFailed: create_repository finished, but its result has no url.")
    assert "**Name:**" not in answer


def test_the_step_limit_is_reported() -> None:
    answer = _ended(
        "The workflow Onboard Service was stopped at the step limit. What became of its steps:\n"
        "- Create the repository (github): completed, url: https://github.example/acme/ledger\n"
        "- Open a ticket (jira): not done",
        ("", "success"),
    )
    assert answer == (
        "The workflow “Onboard Service” was stopped at the step limit.\n\n"
        "url: https://github.example/acme/ledger\n\nNot done: Open a ticket."
    )


def test_an_end_in_other_words_is_answered_from_the_results() -> None:
    assert _ended("The workflow is over.", ("Created **ledger**.", "success")).startswith("Created **ledger**.")


def test_again_starts_the_workflow_again() -> None:
    messages = _started("create a github repo called demo", "The workflow Create GitHub Repo has started.")
    call = {"name": "task", "args": {"description": "Create the repository", "subagent_type": "github"}, "id": "w-2"}
    history = [*messages[1:], AIMessage("", tool_calls=[call]), ToolMessage("Done.", tool_call_id="w-2")]
    assert calls_of([ask("again", *history, AIMessage("Created **demo**."))]) == [
        ("start_workflow", {"name": "create_github_repo", "values": {"repository": "demo"}})
    ]
