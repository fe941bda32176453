"""The offline model over the simulated organization: the real manifests, the real MCP servers, whole conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException

from ai_platform_engineering.manifest import AgentManifest, McpServer, builtin_directory, load_manifests
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import plan_tool
from ai_platform_engineering.multi_agents.platform_engineer.prompts import AgentLine, delegation_description
from ai_platform_engineering.offline_model import OfflineChatModel
from ai_platform_engineering.settings import load_settings
from tests.llm.offline_world import calls_of, form_tool, text, tool

MODEL = OfflineChatModel()
MANIFESTS = load_manifests([builtin_directory()])
AGENT_NAMES = ("argocd", "github", "jira", "pagerduty")


def supervisor_tools(manifests: Sequence[AgentManifest]) -> list[BaseTool]:
    lines = [AgentLine(item.name, item.description, item.keywords) for item in manifests]
    properties = {"description": text("The work"), "subagent_type": text("The agent")}
    return [plan_tool(), tool("task", delegation_description(lines), properties, str, required=list(properties))]


@dataclass
class Organization:
    """The agents of the simulated organization with their tools, and a record of their calls."""

    servers: McpServers
    may_ask: bool
    tool_calls: list[tuple[str, str, dict[str, object]]] = field(default_factory=list)

    async def ask(self, question: str, history: Sequence[BaseMessage] = ()) -> list[BaseMessage]:
        model = MODEL.bind_tools(supervisor_tools([MANIFESTS[name] for name in AGENT_NAMES]))
        messages = [*history, HumanMessage(question)]
        for _ in range(5):
            reply = await model.ainvoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                return messages
            for call in reply.tool_calls:
                result = "The plan has 1 step."
                if call["name"] == "task":
                    result = await self.delegate(call["args"]["subagent_type"], call["args"]["description"])
                messages.append(ToolMessage(result, tool_call_id=call["id"]))
        raise AssertionError(f"no answer to {question!r}")

    async def delegate(self, name: str, question: str) -> str:
        tools = {item.name: item for item in self.servers.tools(name)}
        model = MODEL.bind_tools([*tools.values(), *([form_tool()] if self.may_ask else [])])
        messages: list[BaseMessage] = [SystemMessage(MANIFESTS[name].prompt), HumanMessage(question)]
        for _ in range(6):
            reply = await model.ainvoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                return str(reply.text)
            for call in reply.tool_calls:
                self.tool_calls.append((name, call["name"], call["args"]))
                try:
                    result = ToolMessage(str(await tools[call["name"]].ainvoke(call["args"])), tool_call_id=call["id"])
                except ToolException as error:
                    result = ToolMessage(str(error), tool_call_id=call["id"], status="error")
                messages.append(result)
        raise AssertionError(f"{name} has no answer to {question!r}")


@pytest.fixture(params=[False, True], ids=["without forms", "with forms"])
async def organization(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Organization]:
    """Questions that say enough are served alike, whether or not the agents may ask back."""
    servers = McpServers(load_settings({"DATA_DIR": str(tmp_path), "SANDBOX": "true"}, env_file=None))
    sandboxes = {
        name: [McpServer(name=name, transport="memory", module=MANIFESTS[name].sandbox)] for name in AGENT_NAMES
    }
    await servers.start(sandboxes, deadline=30)
    yield Organization(servers, request.param)
    await servers.aclose()


EXAMPLES = [(name, example) for name, manifest in MANIFESTS.items() for example in manifest.examples]


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_an_example_of_a_manifest_goes_to_its_agent_among_all_there_are(name: str, example: str) -> None:
    model = MODEL.bind_tools(supervisor_tools(list(MANIFESTS.values())))
    ((_, plan),) = calls_of([model.invoke([HumanMessage(example)])])
    assert name in [step["agent"] for step in plan["steps"]]


OWN_EXAMPLES = [(name, example) for name, example in EXAMPLES if name in AGENT_NAMES]


async def test_the_agents_examples_all_lead_to_a_tool_that_works(organization: Organization) -> None:
    for name, example in OWN_EXAMPLES:
        seen = len(organization.tool_calls)
        answer = await organization.delegate(name, example)
        assert organization.tool_calls[seen:], example
        assert "failed:" not in answer, example


async def test_one_agent(organization: Organization) -> None:
    answer = (await organization.ask("show argocd version"))[-1].text
    assert organization.tool_calls == [("argocd", "version_service__version", {})]
    assert "- **Version:** v3.1.8+becb020" in answer


async def test_my_tickets_are_mine(organization: Organization) -> None:
    answer = (await organization.ask("list my Jira tickets"))[-1].text
    assert answer.startswith("5 issues (assignee me):")
    for key in ("PLAT-41", "PLAT-44", "PLAT-46", "SEC-15", "SHOP-116"):
        assert f"| {key} |" in answer
    assert "SHOP-118" not in answer


async def test_several_agents(organization: Organization) -> None:
    answer = (await organization.ask("compare Jira and GitHub issues"))[-1].text
    assert organization.tool_calls == [("jira", "search_issues", {}), ("github", "list_issues", {})]
    assert answer.startswith("Jira: 16 issues; Github: 7 issues.")


async def test_a_follow_up_changes_what_the_answer_listed(organization: Organization) -> None:
    history = await organization.ask("which applications are out of sync?")
    history = await organization.ask("sync the first one", history)
    assert str(history[-1].text).startswith("Synced guestbook.")
    history = await organization.ask("and which of them are out of sync now?", history)
    assert organization.tool_calls[1:] == [
        ("argocd", "sync_application", {"application": "guestbook"}),
        ("argocd", "list_applications", {"sync_status": "OutOfSync"}),
    ]
    assert "guestbook" not in str(history[-1].text)


async def test_a_tool_that_fails(organization: Organization) -> None:
    answer = (await organization.ask("sync the nosuchapp app"))[-1].text
    assert "`sync_application` (application nosuchapp) failed: There is no application 'nosuchapp'." in answer


async def test_a_ticket_is_created_and_found_again(organization: Organization) -> None:
    history = await organization.ask("create a Jira ticket for the checkout latency problem")
    assert "Created issue **SHOP-120**." in str(history[-1].text)
    history = await organization.ask("comment on it: the tax lookup is slow", history)
    assert organization.tool_calls[-1] == (
        "jira",
        "add_comment",
        {"issue_key": "SHOP-120", "body": "the tax lookup is slow"},
    )
    assert "checkout latency problem" in str((await organization.ask("show SHOP-120"))[-1].text).lower()


async def test_what_is_wrong_is_asked_of_all_who_may_know(organization: Organization) -> None:
    answer = (await organization.ask("what is wrong with payments-api?"))[-1].text
    assert organization.tool_calls == [
        ("argocd", "get_application", {"application": "payments-api"}),
        ("pagerduty", "list_incidents", {"service": "payments-api"}),
    ]
    assert "ImagePullBackOff" in answer
    assert "P4711" in answer
