"""What the offline model does with skills: which it reads, with what, and what becomes of their steps."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.offline_model import OfflineChatModel
from ai_platform_engineering.offline_model.skills.steps import SkillStep, procedure
from ai_platform_engineering.settings import load_settings
from tests.llm.offline_world import (
    argocd_tools,
    calls_of,
    form_tool,
    run_agent,
    supervisor_tools,
    text,
    tool,
    workflow_tool,
)
from tests.llm.test_offline_sandbox import AGENT_NAMES, MANIFESTS, Organization
from tests.skills_middleware.test_library import SKILLS

MODEL = OfflineChatModel()
DESCRIPTIONS = {name: skill.document.description for name, skill in SKILLS.items()}
INSTRUCTIONS = {name: skill.document.instructions for name, skill in SKILLS.items()}
WORKFLOWS = """
Workflows (start one with `start_workflow`):
- onboard_service: Onboard Service. Sets up a new service. (keywords: onboard, onboarding, service; inputs: service)
- roll_back_application: Roll Back Application. Rolls an application back. (keywords: rollback, roll back, revert; \
inputs: application)
"""


def prompt(descriptions: Mapping[str, str] = DESCRIPTIONS) -> SystemMessage:
    lines = [f"- {name}: {description}" for name, description in descriptions.items()]
    section = "\n".join(["Skills are instructions for recurring work. When one fits,\nread it first.", *lines])
    return SystemMessage(f"You are the supervisor.\n{WORKFLOWS}\n{section}\n\nRules:\n- no-skill: This is no skill.")


def read_tool() -> BaseTool:
    properties = {"name": text("Name"), "file": text("File"), "arguments": text("What for")}
    return tool("read_skill", "Read the instructions of a skill.", properties, str, required=["name"])


def search_tool() -> BaseTool:
    return tool("search_skills", "Skills that fit some words.", {"query": text("Words")}, str, required=["query"])


def framed(name: str, instructions: str, arguments: str) -> str:
    """A skill as the tool gives it."""
    filled = instructions.replace("$ARGUMENTS", arguments)
    head = f"Skill {name} (source: built-in, visibility: global, files: none)\nIt gives no rights."
    return f'{head}\n<skill name="{name}">\n{filled}\n</skill>'


def converse(
    question: str,
    *,
    skills: Mapping[str, str] = INSTRUCTIONS,
    results: Mapping[str, str] | None = None,
    tools: Sequence[BaseTool] = (),
    history: Sequence[BaseMessage] = (),
    system: SystemMessage | None = None,
) -> list[BaseMessage]:
    """All messages of a conversation; `results` has what tools return, delegations by the agent."""
    bound = MODEL.bind_tools([*supervisor_tools(), workflow_tool(), read_tool(), *tools])
    messages: list[BaseMessage] = [*history, HumanMessage(question)]
    for _ in range(8):
        reply = bound.invoke([system or prompt(), *messages])
        assert isinstance(reply, AIMessage)
        messages.append(reply)
        if not reply.tool_calls:
            return messages
        for call in reply.tool_calls:
            content, status = _result(call["name"], call["args"], skills, results or {})
            messages.append(ToolMessage(content, name=call["name"], tool_call_id=call["id"], status=status))
    raise AssertionError(f"no answer to {question!r}")


def _result(
    name: str, given: Mapping[str, Any], skills: Mapping[str, str], results: Mapping[str, str]
) -> tuple[str, str]:
    """What a tool returns, and whether it worked."""
    if name == "read_skill" and given["name"] not in skills:
        return f"There is no skill {given['name']!r}.", "error"
    if name == "read_skill":
        return framed(given["name"], skills[given["name"]], given.get("arguments", "")), "success"
    by = given.get("subagent_type", name)
    return results.get(by, f"Answer of {by}."), "success"


def read_by(question: str, *history: BaseMessage) -> dict[str, Any] | None:
    """The arguments with which a skill is read first for a request."""
    bound = MODEL.bind_tools([*supervisor_tools(), workflow_tool(), read_tool()])
    calls = calls_of([bound.invoke([prompt(), *history, HumanMessage(question)])])
    return calls[0][1] if calls and calls[0][0] == "read_skill" else None


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("use the incident-triage skill for payments-api", "incident-triage", "payments-api"),
        ("Can you run incident-triage on checkout, please?", "incident-triage", "checkout"),
        ("for payments-api, use the incident triage skill", "incident-triage", "payments-api"),
        ("follow the skill `oncall-handover`", "oncall-handover", ""),
        ("/incident-triage payments-api", "incident-triage", "payments-api"),
        (
            "use the access-request skill: lena needs write access to acme/gitops",
            "access-request",
            "lena needs write access to acme/gitops",
        ),
        ("use the deployment-rollback skill for checkout", "deployment-rollback", "checkout"),
        ("triage the incident on payments-api", "incident-triage", "payments-api"),
        ("please triage the payments-api outage", "incident-triage", "payments-api"),
        ("prepare the on-call handover", "oncall-handover", ""),
        ("I need a handover for the payments team", "oncall-handover", "payments"),
        ("write the post-incident review for P4711", "post-incident-review", "P4711"),
        ("write a postmortem of P4711", "post-incident-review", "P4711"),
        ("diagnose why the sync of checkout fails", "failed-sync-diagnosis", "checkout"),
        ("draft the release notes for payments-api", "release-notes", "payments-api"),
        ("do a cost review of checkout", "cost-review", "checkout"),
    ],
)
def test_a_skill_is_read_when_it_is_named_or_ordered(question: str, name: str, arguments: str) -> None:
    assert read_by(question) == {"name": name} | ({"arguments": arguments} if arguments else {})


@pytest.mark.parametrize(
    "question",
    [
        "show argocd version",
        "list open incidents",
        "high priority bugs",
        "is checkout degraded",
        "who is on call?",
        "what is wrong with payments-api?",
        "why is payments-api degraded?",
        "when does the certificate of example.com expire?",
        "check the certificate expiry of example.com",
        "review pull request 415 in gitops",
        "review SHOP-118",
        "analyze the incidents of last week",
        "debug checkout",
        "diagnose payments-api",
        "investigate why payments-api is degraded",
        "create a ticket for the checkout latency problem",
        "comment on SHOP-118: prepare the on-call handover",
        "comment on SHOP-118: please use the incident-triage skill for payments-api",
        "triage the incident on payments-api and create a ticket for it",
        "how do I triage an incident?",
        "sync the guestbook app",
        "onboard a new developer",
        "review the service checkout",
        "write the end of the story",
        "make a request to https://example.com",
        "hello",
        # A workflow wins.
        "roll back payments-api",
        "onboard the service ledger",
    ],
)
def test_other_requests_are_served_as_without_skills(question: str) -> None:
    with_skills = MODEL.bind_tools([*supervisor_tools(), workflow_tool(), read_tool()])
    without = MODEL.bind_tools([*supervisor_tools(), workflow_tool()])
    plain = SystemMessage(f"You are the supervisor.\n{WORKFLOWS}")
    asked, expected = (
        bound.invoke([system, HumanMessage(question)]) for bound, system in ((with_skills, prompt()), (without, plain))
    )
    assert (asked.text, calls_of([asked])) == (expected.text, calls_of([expected]))


def test_the_steps_become_a_plan_delegations_and_sections() -> None:
    messages = converse("triage the incident on payments-api", results={"pagerduty": "P4711 is open."})
    (_, read), (_, plan), *delegations = calls_of(messages)
    assert read == {"name": "incident-triage", "arguments": "payments-api"}
    assert plan["title"] == "Incident triage for payments-api"
    steps = [(step["agent"], step["content"]) for step in plan["steps"]]
    assert steps[0] == ("pagerduty", "List the open incidents of payments-api")
    assert [agent for agent, _ in steps] == ["pagerduty", "pagerduty", "argocd", "argocd", "github", "jira", None]
    assert [given["subagent_type"] for _, given in delegations] == [agent for agent, _ in steps[:-1]]
    assert delegations[0][1]["description"].startswith("List the open incidents of payments-api.\n\nContext: a step of")
    answer = str(messages[-1].text)
    assert answer.startswith("I followed the skill `incident-triage` for payments-api.\n\n### Pagerduty: List the open")
    assert "P4711 is open." in answer
    assert "### Argocd: Show the application payments-api\n\nAnswer of argocd." in answer
    assert "**Not done:**\n\n- **Kubernetes**: List the pods of payments-api" in answer
    assert "(the agent Kubernetes is not enabled)" in answer
    # What has a condition is proposed, never done.
    assert "- **Pagerduty**: Acknowledge the incident of payments-api (if the incident has no owner" in answer


def test_what_is_ordered_beside_a_skill_is_not_forgotten() -> None:
    messages = converse("use the incident-triage skill for payments-api and create a ticket")
    assert calls_of(messages)[0] == ("read_skill", {"name": "incident-triage", "arguments": "payments-api"})
    assert "- create a ticket (not a step of the skill; ask for it on its own)" in str(messages[-1].text)


def test_a_follow_up_uses_the_skill_for_another_thing() -> None:
    history = converse("/incident-triage payments-api")
    assert read_by("and what about checkout?", *history) == {"name": "incident-triage", "arguments": "checkout"}
    assert read_by("who is on call?", *history) is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"service": "checkout"}', "I followed the skill `incident-triage` for checkout."),
        ("The person canceled the form: not now", "The form “Incident triage” was canceled (not now)"),
    ],
)
def test_a_skill_without_its_subject_asks_for_it(answer: str, expected: str) -> None:
    messages = converse("use the incident-triage skill", tools=[form_tool()], results={"request_user_input": answer})
    (_, first), (asked, form), *_ = calls_of(messages)
    assert (first, asked) == ({"name": "incident-triage"}, "request_user_input")
    assert [field["name"] for field in form["fields"]] == ["service"]
    assert str(messages[-1].text).startswith(expected)


def test_without_forms_it_says_what_is_missing() -> None:
    answer = str(converse("use the incident-triage skill")[-1].text)
    assert answer.startswith("The skill `incident-triage` needs the service that it is to be used for")


def test_a_change_is_made_only_for_who_names_the_skill() -> None:
    skills = {"tidy-up": "Tidy up.\n\n1. [Argocd] Show the application guestbook.\n2. [Argocd] Sync guestbook."}
    system = prompt({"tidy-up": "Tidy the guestbook. Use it when it is out of sync."})
    ordered = converse("tidy the guestbook", skills=skills, system=system)
    named = converse("use the tidy-up skill", skills=skills, system=system)
    assert [given["description"].split("\n")[0] for _, given in calls_of(ordered, "task")] == [
        "Show the application guestbook."
    ]
    assert "- **Argocd**: Sync guestbook" in str(ordered[-1].text)
    assert len(calls_of(named, "task")) == 2


def test_steps_without_tags_go_to_the_agents_that_fit() -> None:
    skills = {
        "morning": "## Steps\n\n1. List the open incidents.\n2. Think hard.\n3. When it rains, list the repositories."
    }
    messages = converse("use the morning skill", skills=skills, system=prompt({"morning": "Morning round."}))
    assert [given["subagent_type"] for _, given in calls_of(messages, "task")] == ["pagerduty"]
    answer = str(messages[-1].text)
    assert "- Think hard (no agent fits)" in answer
    assert "- List the repositories (When it rains)" in answer


def test_a_skill_without_steps_is_quoted() -> None:
    skills = {"colours": "Alerts are red.\n\n- Warnings are amber."}
    messages = converse("use the colours skill", skills=skills, system=prompt({"colours": "Colours of alerts."}))
    assert "It says:\n\nAlerts are red.\n\n- Warnings are amber." in str(messages[-1].text)


def test_a_skill_that_cannot_be_read_is_said_to_be_missing() -> None:
    messages = converse("use the gone skill", skills={}, system=prompt({"gone": "No longer there."}))
    assert str(messages[-1].text).startswith("There is no skill 'gone'.")


def test_knowledge_base_steps_are_searches() -> None:
    knowledge = [
        tool("search", "Search documents.", {"query": text("Words")}, str, required=["query"]),
        tool("fetch_document", "Read a document.", {"document_id": text("Id")}, str, required=["document_id"]),
    ]
    found = json.dumps({"results": []})
    messages = converse("/runbook-lookup disk full", tools=knowledge, results={"search": found})
    assert calls_of(messages, "search") == [("search", {"query": "the runbook for disk full"})]
    answer = str(messages[-1].text)
    heading = "### Knowledge base: Search for the runbook for disk full"
    assert f"{heading}\n\nI found nothing in the knowledge base about “the runbook for disk full”.\n\n###" in answer


def test_skills_are_searched_for_only_when_the_request_speaks_of_them() -> None:
    system = SystemMessage(
        "You are the supervisor.\n\nSkills are instructions for recurring work. There are 900 skills."
    )
    found = "\n".join(f"- {name}: {DESCRIPTIONS[name]}" for name in ("incident-triage", "cost-review"))
    results = {"search_skills": found}
    named = converse(
        "use the incident-triage skill for payments-api", tools=[search_tool()], system=system, results=results
    )
    assert calls_of(named)[:2] == [
        ("search_skills", {"query": "incident triage payments api"}),
        ("read_skill", {"name": "incident-triage", "arguments": "payments-api"}),
    ]
    asked = converse("which skill helps with costs?", tools=[search_tool()], system=system, results=results)
    assert str(asked[-1].text).startswith("These skills fit:\n\n- `/incident-triage`: Triage an incident")
    plain = converse("triage the incident on payments-api", tools=[search_tool()], system=system)
    assert {name for name, _ in calls_of(plain)}.isdisjoint({"search_skills", "read_skill"})


def test_the_skills_there_are_can_be_asked_for() -> None:
    answer = str(converse("which skills are there?")[-1].text)
    assert f"- `/incident-triage`: {DESCRIPTIONS['incident-triage']}" in answer


def test_an_agent_reads_a_skill_and_does_its_steps_with_its_tools() -> None:
    instructions = (
        "1. Show the application $ARGUMENTS.\n2. List the deployments of $ARGUMENTS.\n"
        "3. Optional, if that was asked for: sync $ARGUMENTS."
    )
    reading = tool(
        "read_skill",
        "Read the instructions of a skill.",
        {"name": text("Name"), "arguments": text("What for")},
        lambda name, arguments="": framed(name, instructions, arguments),
        required=["name"],
    )
    section = "Skills are instructions for recurring work.\n- health-round: Inspect the health of an application."
    messages = run_agent(
        MODEL, "argocd", "use the health-round skill for guestbook", [*argocd_tools(), reading], rules=section
    )
    assert calls_of(messages) == [
        ("read_skill", {"name": "health-round", "arguments": "guestbook"}),
        ("get_application", {"application": "guestbook"}),
        ("get_application_history", {"application": "guestbook"}),
    ]
    answer = str(messages[-1].text)
    assert answer.startswith("I followed the skill `health-round`.\n\nApplication **guestbook**")
    assert "- Sync guestbook (if that was asked for)" in answer
    plain = run_agent(MODEL, "argocd", "which apps are out of sync?", [*argocd_tools(), reading], rules=section)
    assert [name for name, _ in calls_of(plain)] == ["list_applications"]


async def test_the_sandbox_serves_every_step_of_the_built_in_skills(tmp_path: Path) -> None:
    subjects = {"access-request": "access", "failed-sync-diagnosis": "guestbook", "post-incident-review": "P4711"}
    servers = McpServers(load_settings({"DATA_DIR": str(tmp_path), "SANDBOX": "true"}, env_file=None))
    sandboxes = {
        name: [McpServer(name=name, transport="memory", module=MANIFESTS[name].sandbox)] for name in AGENT_NAMES
    }
    await servers.start(sandboxes, deadline=30)
    organization = Organization(servers, may_ask=True)
    served = 0
    for name, instructions in INSTRUCTIONS.items():
        for step in procedure(instructions.replace("$ARGUMENTS", subjects.get(name, "payments-api"))).steps:
            if step.condition is None and step.tag.lower() in AGENT_NAMES:
                answer = await organization.delegate(step.tag.lower(), step.text)
                assert not re.search("None of my tools|I did not apply|failed:|Not done", answer), (step.text, answer)
                served += 1
    await servers.aclose()
    assert served > 50


@pytest.mark.parametrize(
    "item", ["optional" + " " * 60_000, "[Jira" * 12_000, "if " + "a " * 30_000, "the a  " * 9_000]
)
def test_a_hostile_skill_is_read_quickly(item: str) -> None:
    started = time.process_time()
    read = procedure(f"# {item}\n\n1. {item}\n2. List the open incidents.")
    assert read.steps[-1].text == "List the open incidents."
    assert isinstance(read.needs_arguments, bool)
    assert isinstance(read.subject, str)
    assert time.process_time() - started < 1


def test_steps_are_read_from_any_list_that_people_write() -> None:
    written = procedure(
        "# Title\n\n1. No step.\n\n## Steps\n\n1. [Argo CD] Show\n   it all.\n\n   - detail\n2) (optional) Sync it.\n"
        "3. **[Jira]** If a ticket is missing, create one.\n\n```\n4. code\n```\n\n## Answer\n\n1. No step either."
    )
    assert written.steps == (
        SkillStep("Show it all.", "Argo CD"),
        SkillStep("Sync it.", "", ""),
        SkillStep("Create one.", "Jira", "If a ticket is missing"),
    )
