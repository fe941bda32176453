from __future__ import annotations

import json
import re
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import pytest

from ai_platform_engineering.mcp.tool_server import ToolError
from ai_platform_engineering.sandbox.store import SandboxStore, reset_sandbox
from ai_platform_engineering.settings import Settings
from tests.tool_sessions import session_with

Call = Callable[..., Awaitable[Any]]
CHANGES = {
    "argocd": {"create_application": False, "sync_application": False, "rollback_application": True},
    "jira": {"create_issue": False, "add_comment": False, "transition_issue": False},
    "github": {"create_issue": False, "create_repository": False, "merge_pull_request": False},
    "pagerduty": {
        "acknowledge_incident": False,
        "escalate_incident": False,
        "add_note": False,
        "resolve_incident": False,
    },
}


def refused(text: str) -> Any:
    return pytest.raises(ToolError, match=re.escape(text))


@pytest.mark.parametrize("product", CHANGES)
async def test_every_tool_says_what_it_is_and_does(settings: Settings, product: str) -> None:
    async with session_with(import_module(f"ai_platform_engineering.sandbox.{product}").server(settings)) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    changing = {name: tool.annotations for name, tool in tools.items() if not tool.annotations.readOnlyHint}
    assert {name: hints.destructiveHint for name, hints in changing.items()} == CHANGES[product]
    for tool in tools.values():
        assert tool.description
        assert tool.annotations.title
        assert all("description" in schema for schema in tool.inputSchema["properties"].values()), tool.name


class TestArgoCd:
    async def test_version(self, call: Call) -> None:
        assert (await call("argocd", "version_service__version"))["Version"] == "v3.1.8+becb020"

    @pytest.mark.parametrize(
        ("filters", "names"),
        [
            ({"health": "degraded"}, ["payments-api"]),
            ({"sync_status": "outofsync"}, ["guestbook", "monitoring", "search"]),
            ({"sync_status": "OutOfSync", "project": "Platform"}, ["monitoring"]),
            ({"health": "Suspended"}, ["log-archive"]),
        ],
    )
    async def test_list(self, call: Call, filters: dict[str, str], names: list[str]) -> None:
        found = await call("argocd", "list_applications", **filters)
        assert [application["name"] for application in found["applications"]] == names
        assert found["total"] == len(names)

    async def test_sync_deploys_what_git_asks_for(self, call: Call) -> None:
        before = await call("argocd", "get_application", application="guestbook")
        assert (before["sync_status"], before["target_revision"]["revision"]) == ("OutOfSync", "4f2c9e1")
        await call("argocd", "sync_application", application="guestbook")
        after = await call("argocd", "get_application", application="guestbook")
        assert (after["sync_status"], after["live_revision"]["revision"]) == ("Synced", "4f2c9e1")
        history = (await call("argocd", "get_application_history", application="guestbook"))["deployments"]
        assert [(entry["id"], entry["revision"]) for entry in history][:2] == [(3, "4f2c9e1"), (2, "9b1d0aa")]
        assert history[0]["initiated_by"] == "Alex Rivera"

    async def test_a_bad_image_stays_degraded_after_a_sync_and_says_why(self, call: Call) -> None:
        result = await call("argocd", "sync_application", application="payments-api")
        assert (result["sync_status"], result["health"]) == ("Synced", "Degraded")
        assert "payments-api:2.41.0 does not exist" in result["problem"]

    async def test_rollback_helps_until_the_next_sync(self, call: Call) -> None:
        back = await call("argocd", "rollback_application", application="payments-api")
        assert (back["health"], back["sync_status"], back["revision"]) == ("Healthy", "OutOfSync", "f6024cd")
        assert (await call("argocd", "sync_application", application="payments-api"))["health"] == "Degraded"

    @pytest.mark.parametrize(
        ("revision", "arrived"), [("1", "88f0b3e"), ("88f0b3e", "88f0b3e"), ("f6024cd", "f6024cd")]
    )
    async def test_rollback_to_a_revision_or_a_deployment(self, call: Call, revision: str, arrived: str) -> None:
        result = await call("argocd", "rollback_application", application="payments-api", revision=revision)
        assert result["revision"] == arrived

    async def test_rollback_with_nothing_before(self, call: Call) -> None:
        with refused("cert-manager has no earlier deployment"):
            await call("argocd", "rollback_application", application="cert-manager")
        with refused("no deployed revision of payments-api '9'"):
            await call("argocd", "rollback_application", application="payments-api", revision="9")

    async def test_a_suspended_application_stays_suspended(self, call: Call) -> None:
        assert (await call("argocd", "sync_application", application="log-archive"))["health"] == "Suspended"

    async def test_a_new_application_once(self, call: Call) -> None:
        created = await call("argocd", "create_application", application="loyalty", project="Shop")
        assert (created["health"], created["sync_status"]) == ("Healthy", "Synced")
        found = await call("argocd", "get_application", application="loyalty")
        assert (found["project"], found["namespace"], found["url"]) == ("shop", "shop", created["url"])
        assert found["image"] == "registry.acme.example/loyalty:0.1.0"
        history = (await call("argocd", "get_application_history", application="loyalty"))["deployments"]
        assert [(entry["id"], entry["initiated_by"]) for entry in history] == [(1, "Alex Rivera")]
        with refused("An application loyalty exists already: https://argocd.acme.example/applications/loyalty"):
            await call("argocd", "create_application", application="loyalty", project="platform")

    async def test_a_new_application_where_and_with_what(self, call: Call) -> None:
        await call(
            "argocd", "create_application", application="jobs", project="platform", namespace="batch", image="r/jobs:2"
        )
        found = await call("argocd", "get_application", application="jobs")
        assert (found["namespace"], found["image"]) == ("batch", "r/jobs:2")

    @pytest.mark.parametrize("name", ["", "Not A Name", "-a", "a-", "a" * 64, "a_b"])
    async def test_what_is_no_name_creates_nothing(self, call: Call, name: str) -> None:
        with refused("is no name for an application. Use up to 63 lower-case letters"):
            await call("argocd", "create_application", application=name, project="shop")
        with refused("is no name for a namespace"):
            await call("argocd", "create_application", application="ok", project="shop", namespace=f"{name}_")
        with refused("no project 'shed'. Choose one of: platform, shop"):
            await call("argocd", "create_application", application="ok", project="shed")
        assert (await call("argocd", "list_applications"))["total"] == 11

    async def test_unknown_names_are_refused_with_the_known_ones(self, call: Call) -> None:
        with refused("no application 'nosuchapp'. Choose one of: cert-manager, checkout"):
            await call("argocd", "sync_application", application="nosuchapp")
        with refused("no project 'shed'. Choose one of: platform, shop"):
            await call("argocd", "list_applications", project="shed")
        with refused("'ill' is not allowed. Choose one of: Healthy, Degraded"):
            await call("argocd", "list_applications", health="ill")

    async def test_projects(self, call: Call) -> None:
        projects = (await call("argocd", "list_projects"))["projects"]
        assert {project["name"]: project["applications"] for project in projects} == {"platform": 4, "shop": 7}


class TestJira:
    @pytest.mark.parametrize(
        ("filters", "keys"),
        [
            ({"assignee": "me"}, {"PLAT-41", "PLAT-44", "PLAT-46", "SEC-15", "SHOP-116"}),
            ({"assignee": "Alex Rivera", "project": "shop"}, {"SHOP-116"}),
            ({"assignee": "unassigned"}, {"SHOP-115", "SHOP-119"}),
            ({"status": "done"}, {"PLAT-43", "SEC-14"}),
            ({"status": "open", "project": "Security"}, {"SEC-12", "SEC-15"}),
            ({"query": "payments-api DEGRADED"}, {"SHOP-118"}),
            ({"query": "no such words"}, set()),
        ],
    )
    async def test_search(self, call: Call, filters: dict[str, str], keys: set[str]) -> None:
        found = await call("jira", "search_issues", **filters)
        assert {issue["key"] for issue in found["issues"]} == keys

    async def test_search_tells_how_many_there_are_and_starts_with_the_latest(self, call: Call) -> None:
        found = await call("jira", "search_issues", limit=2)
        assert (found["total"], [issue["key"] for issue in found["issues"]]) == (16, ["SHOP-119", "PLAT-46"])

    async def test_create_comment_and_move(self, call: Call) -> None:
        key = (await call("jira", "create_issue", summary=" Checkout is slow ", priority="high"))["key"]
        assert key == "SHOP-120"
        assert (await call("jira", "create_issue", summary="Pods pending", project="plat"))["key"] == "PLAT-49"
        await call("jira", "add_comment", issue_key=key, body="Looking into it.")
        await call("jira", "transition_issue", issue_key=key, status="in progress")
        issue = await call("jira", "get_issue", issue_key="shop-120")
        assert issue["summary"] == "Checkout is slow"
        assert (issue["status"], issue["priority"], issue["reporter"]) == ("In Progress", "High", "Alex Rivera")
        assert [(comment["author"], comment["body"]) for comment in issue["comments"]] == [
            ("Alex Rivera", "Looking into it.")
        ]
        latest = (await call("jira", "search_issues", limit=1))["issues"][0]
        assert latest["key"] == key

    async def test_only_transitions_that_exist(self, call: Call) -> None:
        with refused("SHOP-115 is To Do and cannot go to In Review. It can go to: In Progress"):
            await call("jira", "transition_issue", issue_key="SHOP-115", status="In Review")
        assert (await call("jira", "get_issue", issue_key="SHOP-115"))["status"] == "To Do"

    async def test_unknown_names_are_refused_with_the_known_ones(self, call: Call) -> None:
        with refused("no issue 'SEC-99'. Choose one of: SEC-12, SEC-14, SEC-15"):
            await call("jira", "get_issue", issue_key="SEC-99")
        with refused("no project 'OPS'"):
            await call("jira", "create_issue", summary="x", project="OPS")
        with refused("no person 'nobody'"):
            await call("jira", "search_issues", assignee="nobody")

    async def test_an_empty_summary_creates_nothing(self, call: Call) -> None:
        with pytest.raises(ToolError):
            await call("jira", "create_issue", summary="  ")
        assert (await call("jira", "search_issues"))["total"] == 16

    async def test_projects(self, call: Call) -> None:
        projects = (await call("jira", "list_projects"))["projects"]
        assert {project["key"]: project["open_issues"] for project in projects} == {"PLAT": 5, "SEC": 2, "SHOP": 7}


class TestGitHub:
    async def test_lists(self, call: Call) -> None:
        assert (await call("github", "list_repositories"))["total"] == 7
        found = await call("github", "list_repositories", query="typescript")
        assert [entry["repository"] for entry in found["repositories"]] == ["acme/guestbook", "acme/web-frontend"]
        assert (await call("github", "list_issues"))["total"] == 7
        assert (await call("github", "list_issues", state="all"))["total"] == 10
        mine = (await call("github", "list_issues", assignee="me"))["issues"]
        assert [(issue["repository"], issue["number"]) for issue in mine] == [("acme/gitops", 410)]
        pulls = (await call("github", "list_pull_requests", repository="acme/gitops", state="merged"))["pull_requests"]
        assert [pull["number"] for pull in pulls] == [412, 409, 407]
        assert (await call("github", "list_pull_requests", author="priya"))["pull_requests"][0]["number"] == 415

    async def test_one_of_each(self, call: Call) -> None:
        repository = await call("github", "get_repository", repository="ACME/Gitops")
        assert (repository["open_issues"], repository["open_pull_requests"]) == (1, 1)
        issue = await call("github", "get_issue", repository="payments-api", number=57)
        assert issue["related"]["tickets"] == ["SHOP-118"]
        pull = await call("github", "get_pull_request", repository="gitops", number=412)
        assert pull["changes"].endswith("2.13.4 -> 2.41.0")

    async def test_a_new_issue_takes_the_next_number_of_issues_and_pull_requests(self, call: Call) -> None:
        created = await call("github", "create_issue", repository="gitops", title="Tidy up", body="All of it.")
        assert created["number"] == 416
        assert (await call("github", "get_issue", repository="gitops", number=416))["body"] == "All of it."

    async def test_a_new_repository_once(self, call: Call) -> None:
        await call("github", "create_repository", name="demo", description="To try things", private=False)
        assert (await call("github", "get_repository", repository="demo"))["visibility"] == "public"
        assert (await call("github", "create_issue", repository="demo", title="First"))["number"] == 1
        with refused("acme/demo exists already"):
            await call("github", "create_repository", name="Demo")
        with refused("no name for a repository"):
            await call("github", "create_repository", name="not a name")

    async def test_unknown_names_are_refused_with_the_known_ones(self, call: Call) -> None:
        with refused("no repository 'shed'. Choose one of: acme/checkout"):
            await call("github", "list_issues", repository="shed")
        with refused("no pull request in gitops with number 1. Choose one of: 407, 409, 412"):
            await call("github", "get_pull_request", repository="gitops", number=1)
        with refused("no issue in checkout with number 90"):
            await call("github", "get_issue", repository="checkout", number=90)

    async def test_a_merged_pull_request_cannot_be_merged(self, call: Call) -> None:
        with refused("acme/gitops#412 is merged already"):
            await call("github", "merge_pull_request", repository="gitops", number=412)


class TestPagerDuty:
    async def test_lists(self, call: Call) -> None:
        def ids(found: dict[str, list[dict[str, str]]]) -> list[str]:
            return [incident["id"] for incident in found["incidents"]]

        assert ids(await call("pagerduty", "list_incidents")) == ["P4711", "P4708"]
        assert ids(await call("pagerduty", "list_incidents", status="all")) == ["P4711", "P4708", "P4702", "P4695"]
        assert ids(await call("pagerduty", "list_incidents", service="checkout")) == ["P4708"]
        services = (await call("pagerduty", "list_services"))["services"]
        assert {service["name"]: service["open_incidents"] for service in services} == {
            "checkout": ["P4708"],
            "payments-api": ["P4711"],
            "platform": [],
            "web-frontend": [],
        }

    @pytest.mark.parametrize("schedule", ["Payments on-call", "payments", "payments-api"])
    async def test_who_is_on_call(self, call: Call, schedule: str) -> None:
        found = await call("pagerduty", "list_on_calls", schedule=schedule)
        assert [entry["on_call"] for entry in found["on_calls"]] == ["Priya Nair"]

    async def test_acknowledge_then_resolve(self, call: Call) -> None:
        assert (await call("pagerduty", "acknowledge_incident", incident_id="#4711"))["status"] == "acknowledged"
        with refused("P4711 is acknowledged already"):
            await call("pagerduty", "acknowledge_incident", incident_id="P4711")
        await call("pagerduty", "resolve_incident", incident_id="p4711", note="The tag was corrected.")
        incident = await call("pagerduty", "get_incident", incident_id="4711")
        assert incident["status"] == "resolved"
        assert [entry["text"] for entry in incident["log"]][-2:] == [
            "Acknowledged by Alex Rivera.",
            "Resolved by Alex Rivera. The tag was corrected.",
        ]
        with refused("resolved already"):
            await call("pagerduty", "resolve_incident", incident_id="P4711")

    async def test_escalate(self, call: Call) -> None:
        before = await call("pagerduty", "get_incident", incident_id="P4711")
        assert before["assignee"] == "Priya Nair"
        escalated = await call("pagerduty", "escalate_incident", incident_id="p4711", note=" Nobody answers. ")
        assert (escalated["assignee"], escalated["status"]) == ("Sam Okafor", before["status"])
        incident = await call("pagerduty", "get_incident", incident_id="P4711")
        assert incident["assignee"] == "Sam Okafor"
        assert incident["log"][-1]["text"] == "Escalated from Priya Nair to Sam Okafor by Alex Rivera. Nobody answers."
        with refused("P4711 is with Sam Okafor already, the last level of escalation. Add a note instead."):
            await call("pagerduty", "escalate_incident", incident_id="P4711")
        with refused("P4702 is resolved already; only an open incident is escalated"):
            await call("pagerduty", "escalate_incident", incident_id="P4702")

    async def test_a_note(self, call: Call) -> None:
        await call("pagerduty", "add_note", incident_id="P4708", note=" Cache warmed. ")
        incident = await call("pagerduty", "get_incident", incident_id="P4708")
        assert incident["log"][-1]["text"] == "Note by Alex Rivera: Cache warmed."
        with pytest.raises(ToolError):
            await call("pagerduty", "add_note", incident_id="P4708", note="  ")
        with refused("no incident 'P1'"):
            await call("pagerduty", "add_note", incident_id="P1", note="x")

    async def test_unknown_names_are_refused_with_the_known_ones(self, call: Call) -> None:
        with refused("no incident 'P1'. Choose one of: P4695, P4702, P4708, P4711"):
            await call("pagerduty", "get_incident", incident_id="P1")
        with refused("no schedule 'night'"):
            await call("pagerduty", "list_on_calls", schedule="night")
        with refused("no service 'shed'"):
            await call("pagerduty", "list_incidents", service="shed")


async def test_the_broken_application_can_be_mended(call: Call) -> None:
    await call("github", "merge_pull_request", repository="gitops", number=415)
    merged = await call("argocd", "get_application", application="payments-api")
    assert (merged["sync_status"], merged["health"]) == ("OutOfSync", "Degraded")
    assert merged["target_revision"]["pull_request"] == "acme/gitops#415"
    synced = await call("argocd", "sync_application", application="payments-api")
    assert (synced["sync_status"], synced["health"]) == ("Synced", "Healthy")
    assert synced["image"].endswith(":2.14.0")


async def test_another_process_sees_the_change_and_changes_too(
    settings: Settings, call: Call, store: SandboxStore
) -> None:
    await call("jira", "create_issue", summary="From here")
    script = """
import asyncio, json, sys
from ai_platform_engineering.sandbox.jira import server
from ai_platform_engineering.settings import load_settings

async def main():
    jira = server(load_settings({"DATA_DIR": sys.argv[1]}, env_file=None))
    created = await jira.call_tool("create_issue", {"summary": "From there"})
    seen = await jira.call_tool("get_issue", {"issue_key": "SHOP-120"})
    print(json.dumps([created.structured["key"], seen.structured["summary"]]))

asyncio.run(main())
"""
    other = await create_subprocess_exec(sys.executable, "-c", script, str(settings.data_dir), stdout=PIPE)
    output, _ = await other.communicate()
    assert json.loads(output) == ["SHOP-121", "From here"]
    assert (await call("jira", "get_issue", issue_key="SHOP-121"))["summary"] == "From there"
    reset_sandbox(store.path)
    assert (await call("jira", "search_issues"))["total"] == 16


async def test_a_file_that_cannot_be_used_is_an_error_of_the_tool(call: Call, store: SandboxStore) -> None:
    store.path.parent.mkdir(parents=True)
    store.path.write_text("no database, " * 100)
    with refused("sandbox reset"):
        await call("jira", "list_projects")
