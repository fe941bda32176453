"""What the offline model does as an agent: which tools it calls, with what, and what it makes of the results."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from ai_platform_engineering.offline_model import OfflineChatModel
from tests.llm.offline_world import (
    AGENTS,
    DESTROY,
    PROMPT,
    WRITE,
    argocd_tools,
    calls_of,
    jira_tools,
    run_agent,
    text,
    tool,
)

MODEL = OfflineChatModel()

CALLS: list[tuple[str, str, list[tuple[str, dict[str, Any]]]]] = [
    ("argocd", "show argocd version", [("version_service__version", {})]),
    ("argocd", "which version of argocd is running?", [("version_service__version", {})]),
    ("argocd", "list the applications", [("list_applications", {})]),
    ("argocd", "show argocd", [("list_applications", {})]),
    ("argocd", "which applications are out of sync?", [("list_applications", {"sync_status": "OutOfSync"})]),
    ("argocd", "show me the failing apps", [("list_applications", {"health": "Degraded"})]),
    ("argocd", "which apps are not healthy?", [("list_applications", {})]),
    ("argocd", "show the sync status of all apps", [("list_applications", {})]),
    ("argocd", "apps in platform", [("list_applications", {"project": "platform"})]),
    ("argocd", "list apps in project platform", [("list_applications", {"project": "platform"})]),
    ("argocd", "list the projects", [("list_projects", {})]),
    ("argocd", "show the guestbook app", [("get_application", {"application": "guestbook"})]),
    ("argocd", "status of payments-api", [("get_application", {"application": "payments-api"})]),
    ("argocd", "what is wrong with payments-api?", [("get_application", {"application": "payments-api"})]),
    ("argocd", "sync status of guestbook", [("get_application", {"application": "guestbook"})]),
    ("argocd", "guestbook's health", [("get_application", {"application": "guestbook"})]),
    ("argocd", 'show the "guestbook" application', [("get_application", {"application": "guestbook"})]),
    ("argocd", "history of guestbook", [("get_application_history", {"application": "guestbook"})]),
    ("argocd", "sync the guestbook app", [("sync_application", {"application": "guestbook"})]),
    ("argocd", "Could you please sync guestbook?", [("sync_application", {"application": "guestbook"})]),
    ("argocd", "trigger a sync of checkout", [("sync_application", {"application": "checkout"})]),
    ("argocd", "sync the search app", [("sync_application", {"application": "search"})]),
    ("argocd", "roll checkout back", [("rollback_application", {"application": "checkout"})]),
    (
        "argocd",
        "roll back checkout to revision 2",
        [("rollback_application", {"application": "checkout", "revision": 2})],
    ),
    (
        "argocd",
        "show the guestbook app and list the projects",
        [("get_application", {"application": "guestbook"}), ("list_projects", {})],
    ),
    ("jira", "list my Jira tickets", [("search_issues", {"assignee": "me"})]),
    ("jira", "show me all tickets", [("search_issues", {})]),
    ("jira", "tickets assigned to priya", [("search_issues", {"assignee": "priya"})]),
    ("jira", "unassigned tickets", [("search_issues", {"assignee": "unassigned"})]),
    ("jira", "which issues are open?", [("search_issues", {"status": "open"})]),
    ("jira", "my tickets in progress", [("search_issues", {"status": "In Progress", "assignee": "me"})]),
    ("jira", "tickets in SHOP", [("search_issues", {"project": "SHOP"})]),
    ("jira", "tickets about certificates", [("search_issues", {"query": "certificates"})]),
    ("jira", "search jira for certificate", [("search_issues", {"query": "certificate"})]),
    ("jira", "tickets of payments-api", [("search_issues", {"query": "payments-api"})]),
    ("jira", "list the first 5 tickets", [("search_issues", {"limit": 5})]),
    ("jira", "show SHOP-118", [("get_issue", {"issue_key": "SHOP-118"})]),
    ("jira", "tell me more about SHOP-118", [("get_issue", {"issue_key": "SHOP-118"})]),
    (
        "jira",
        "create a Jira ticket for the checkout latency problem",
        [("create_issue", {"summary": "Checkout latency problem"})],
    ),
    ("jira", 'open a ticket titled "Fix the login page"', [("create_issue", {"summary": "Fix the login page"})]),
    (
        "jira",
        "create a high priority bug in PLAT: Prometheus drops samples",
        [
            (
                "create_issue",
                {"summary": "Prometheus drops samples", "project": "PLAT", "issue_type": "Bug", "priority": "High"},
            )
        ],
    ),
    ("jira", "move SHOP-118 to In Review", [("transition_issue", {"issue_key": "SHOP-118", "status": "In Review"})]),
    (
        "jira",
        "comment on SHOP-118: the fix is merged, and it works",
        [("add_comment", {"issue_key": "SHOP-118", "body": "the fix is merged, and it works"})],
    ),
    ("github", "list the open pull requests", [("list_pull_requests", {"state": "open"})]),
    ("github", "PRs in gitops", [("list_pull_requests", {"repository": "gitops"})]),
    (
        "github",
        "what does pull request 415 in gitops change?",
        [("get_pull_request", {"repository": "gitops", "number": 415})],
    ),
    ("github", "merge acme/gitops#415", [("merge_pull_request", {"repository": "acme/gitops", "number": 415})]),
    (
        "github",
        "which issues are open in payments-api?",
        [("list_issues", {"repository": "payments-api", "state": "open"})],
    ),
    ("github", "show issue 88 in checkout", [("get_issue", {"repository": "checkout", "number": 88})]),
    (
        "github",
        "create a public repo called demo-site",
        [("create_repository", {"name": "demo-site", "private": False})],
    ),
    ("pagerduty", "who is on call?", [("list_on_calls", {})]),
    ("pagerduty", "who is on-call for payments?", [("list_on_calls", {"schedule": "payments"})]),
    ("pagerduty", "which incidents are open?", [("list_incidents", {"status": "open"})]),
    ("pagerduty", "is there an incident for checkout?", [("list_incidents", {"service": "checkout"})]),
    ("pagerduty", "checkout incidents", [("list_incidents", {"service": "checkout"})]),
    ("pagerduty", "show P4711", [("get_incident", {"incident_id": "P4711"})]),
    ("pagerduty", "ack P4711", [("acknowledge_incident", {"incident_id": "P4711"})]),
    ("pagerduty", "close incident P4711", [("resolve_incident", {"incident_id": "P4711"})]),
    ("netutils", "resolve example.com", [("dns_lookup", {"name": "example.com"})]),
    (
        "netutils",
        "look up the MX records of example.com",
        [("dns_lookup", {"name": "example.com", "record_type": "MX"})],
    ),
    ("netutils", "reverse lookup of 192.0.2.7", [("reverse_lookup", {"address": "192.0.2.7"})]),
    ("netutils", "is port 443 open on example.com?", [("check_port", {"host": "example.com", "port": 443})]),
    ("netutils", "check port 8080 of 10.0.0.5", [("check_port", {"host": "10.0.0.5", "port": 8080})]),
    ("netutils", "split 10.0.0.0/16 into 4 subnets", [("plan_subnets", {"cidr": "10.0.0.0/16", "count": 4})]),
    ("netutils", "plan 10.0.0.0/16 into /24 subnets", [("plan_subnets", {"cidr": "10.0.0.0/16", "new_prefix": 24})]),
    ("netutils", "when does the certificate of example.com expire?", [("certificate_expiry", {"host": "example.com"})]),
    ("netutils", "is https://example.com/health up?", [("http_check", {"url": "https://example.com/health"})]),
]


@pytest.mark.parametrize(("agent", "question", "expected"), CALLS, ids=[question for _, question, _ in CALLS])
def test_tools_and_arguments_for_a_question(
    agent: str, question: str, expected: list[tuple[str, dict[str, Any]]]
) -> None:
    reply = MODEL.bind_tools(AGENTS[agent][1]()).invoke(
        [SystemMessage(PROMPT.format(name=agent)), HumanMessage(question)]
    )
    assert calls_of([reply]) == expected
    assert reply.text == ""


@pytest.mark.parametrize(
    ("agent", "question"),
    [
        ("argocd", "which apps are out of sync?"),
        ("argocd", "how do I sync the guestbook app?"),
        ("argocd", "do not sync guestbook"),
        ("argocd", "was guestbook synced?"),
        ("argocd", "show the rollback history of checkout"),
        ("jira", "open issues"),
        ("jira", "show the comments on SHOP-118"),
        ("github", "which pull requests can we merge?"),
        ("pagerduty", "which incidents did we resolve?"),
        ("pagerduty", "list the acknowledged incidents"),
    ],
)
def test_nothing_is_changed_unless_it_is_asked_for(agent: str, question: str) -> None:
    tools = {item.name: item for item in AGENTS[agent][1]()}
    used = [name for name, _ in calls_of(run_agent(MODEL, agent, question))]
    assert [name for name in used if not tools[name].metadata["read_only"]] == []


def test_a_tool_that_escalates_changes_something() -> None:
    escalate = tool(
        "escalate_incident",
        "Escalate an incident to the next person.",
        {"incident_id": text("Id of the incident, such as P4711"), "note": text("Why", default="")},
        lambda incident_id, note="": {"message": f"{incident_id} is with Sam now."},
        required=["incident_id"],
        metadata=WRITE,
    )
    tools = [*AGENTS["pagerduty"][1](), escalate]
    asked = run_agent(MODEL, "pagerduty", "to whom can incident P4711 be escalated?", tools)
    assert calls_of(asked, "escalate_incident") == []
    escalated = run_agent(MODEL, "pagerduty", "escalate incident P4711", tools)
    assert calls_of(escalated) == [("escalate_incident", {"incident_id": "P4711"})]
    assert escalated[-1].text == "P4711 is with Sam now."


@pytest.mark.parametrize("question", ["delete the guestbook app", "restart checkout", "scale guestbook to 3"])
def test_a_change_no_tool_makes_is_refused_without_a_call(question: str) -> None:
    messages = run_agent(MODEL, "argocd", question)
    assert calls_of(messages) == []
    assert messages[-1].text.startswith("None of my tools fits this request. I can use:")
    assert "- `sync_application`: Sync an application with its Git repository." in messages[-1].text


def test_a_tool_that_fails_is_named_with_its_words() -> None:
    messages = run_agent(MODEL, "argocd", "sync the nosuchapp app")
    assert calls_of(messages) == [("sync_application", {"application": "nosuchapp"})]
    assert messages[-1].text == (
        "`sync_application` (application nosuchapp) failed: There is no application 'nosuchapp'. "
        "Applications: checkout, guestbook, monitoring, payments-api."
    )


def test_what_is_missing_is_looked_up_and_asked_for_when_that_does_not_tell() -> None:
    messages = run_agent(MODEL, "argocd", "sync the app")
    assert calls_of(messages) == [("list_applications", {})]
    assert messages[-1].text == (
        "For `sync_application` I need the application (Name of the application); the request does not say. "
        "There are: checkout, guestbook, monitoring, payments-api."
    )


def test_a_lookup_that_tells_is_used_and_not_repeated_in_the_answer() -> None:
    messages = run_agent(MODEL, "pagerduty", "acknowledge the latency incident")
    assert calls_of(messages) == [("list_incidents", {}), ("acknowledge_incident", {"incident_id": "P4708"})]
    assert "P4711" not in messages[-1].text


def test_without_a_lookup_the_missing_detail_is_asked_for() -> None:
    messages = run_agent(MODEL, "netutils", "is a port open?")
    assert calls_of(messages) == []
    assert messages[-1].text == (
        "For `check_port` I need the host (Host name or address) and the port (TCP port); the request does not say."
    )


def test_something_new_goes_to_the_first_place_there_is_but_no_target_is_guessed() -> None:
    create = tool(
        "create_page",
        "Create a page in a space.",
        {"space": text("Key of the space"), "title": text("Title")},
        lambda space, title: {"id": 7, "space": space, "title": title},
        required=["space", "title"],
        metadata={"read_only": False},
    )
    delete = tool(
        "delete_space",
        "Delete a space.",
        {"space": text("Key of the space")},
        lambda space: "gone",
        required=["space"],
        metadata=DESTROY,
    )
    spaces = tool("list_spaces", "Spaces.", {}, lambda: [{"key": "OPS"}, {"key": "DEV"}])
    made = run_agent(MODEL, "wiki", "create a page about restoring backups", [create, delete, spaces])
    assert calls_of(made) == [("list_spaces", {}), ("create_page", {"space": "OPS", "title": "Restoring backups"})]
    asked = run_agent(MODEL, "wiki", "delete the space", [create, delete, spaces])
    assert calls_of(asked) == [("list_spaces", {})]
    assert "There are: OPS, DEV." in asked[-1].text


def test_a_later_part_can_refer_to_the_result_of_an_earlier_one() -> None:
    messages = run_agent(MODEL, "jira", "create a ticket for the login problem, then comment on it: seen in staging")
    assert calls_of(messages) == [
        ("create_issue", {"summary": "Login problem"}),
        ("add_comment", {"issue_key": "SHOP-120", "body": "seen in staging"}),
    ]


def test_an_agent_served_alone_understands_follow_ups() -> None:
    history: list[BaseMessage] = run_agent(MODEL, "argocd", "which applications are out of sync?")
    reply = MODEL.bind_tools(argocd_tools()).invoke([*history, HumanMessage("sync the second one")])
    assert calls_of([reply]) == [("sync_application", {"application": "monitoring"})]


def test_the_context_a_supervisor_adds_does_not_change_what_is_done() -> None:
    question = "show Jira issues\n\nContext: part of the request “compare Jira and GitHub issues and sync guestbook”."
    assert calls_of(run_agent(MODEL, "jira", question)) == [("search_issues", {})]


def test_a_listing_becomes_a_table_with_its_count_and_its_limits() -> None:
    answer = run_agent(MODEL, "argocd", "which applications are out of sync?")[-1].text
    assert answer == (
        "2 applications (sync status OutOfSync):\n\n"
        "| Name | Project | Health | Sync status |\n"
        "| --- | --- | --- | --- |\n"
        "| guestbook | shop | Healthy | OutOfSync |\n"
        "| monitoring | platform | Healthy | OutOfSync |"
    )


def test_nothing_found_is_said_so() -> None:
    assert run_agent(MODEL, "argocd", "list the suspended apps")[-1].text == "No applications found (health Suspended)."


def test_a_change_is_reported_with_the_state_it_led_to() -> None:
    assert run_agent(MODEL, "argocd", "sync the guestbook app")[-1].text == (
        "Done: sync application **guestbook**.\n\n"
        "- **Name:** guestbook\n- **Project:** shop\n- **Health:** Healthy\n- **Sync status:** Synced"
    )


def test_agents_do_not_sign_their_answers() -> None:
    assert "offline" not in run_agent(MODEL, "argocd", "show argocd version")[-1].text


def test_an_agent_without_tools_says_so() -> None:
    reply = MODEL.invoke([SystemMessage("You look after Jira."), HumanMessage("list my tickets")])
    assert reply.text == "I have no tools at the moment, so I cannot look anything up or change anything."


def test_an_agent_without_tools_gives_the_reason_in_its_instructions() -> None:
    prompt = "You look after Jira.\n\nYou have no tools at the moment: mcp.example did not answer. Say so."
    reply = MODEL.invoke([SystemMessage(prompt), HumanMessage("list my tickets")])
    assert reply.text.endswith("or change anything. The reason: mcp.example did not answer.")


def test_at_the_step_limit_the_agent_answers_from_what_it_has() -> None:
    messages = run_agent(MODEL, "argocd", "show the guestbook app")[:-1]
    reply = MODEL.invoke([*messages, HumanMessage("You have used all the steps you may take. Do not call any tool.")])
    assert reply.tool_calls == []
    assert "- **Health:** Healthy" in reply.text
    assert reply.text.endswith("I had to stop here, before I could be sure that everything was done.")


def test_no_call_is_made_twice_even_if_its_result_is_missing() -> None:
    first = MODEL.bind_tools(jira_tools()).invoke([HumanMessage("show SHOP-118")])
    assert isinstance(first, AIMessage)
    again = MODEL.bind_tools(jira_tools()).invoke([HumanMessage("show SHOP-118"), first])
    assert again.tool_calls == []
    assert again.text == "The tools gave no result."


def test_many_parts_are_limited_to_a_handful_of_calls() -> None:
    question = ". ".join(f"Show SHOP-{number}" for number in range(100, 120))
    reply = MODEL.bind_tools(jira_tools()).invoke([HumanMessage(question)])
    assert calls_of([reply]) == [("get_issue", {"issue_key": f"SHOP-{number}"}) for number in range(100, 106)]
