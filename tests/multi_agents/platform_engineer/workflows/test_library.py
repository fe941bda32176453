"""The workflows that come with the product, on the sandbox, with the offline model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from ai_platform_engineering.forms.answers import Submitted, answer_data
from ai_platform_engineering.forms.filling import FilledForm, fill
from ai_platform_engineering.graphs.agent_models import model_for
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Condition, Input, Step, Workflow
from ai_platform_engineering.multi_agents.platform_engineer.workflows.loader import (
    known_workflows,
    ready_workflows,
    workflow_offers,
)
from ai_platform_engineering.multi_agents.platform_engineer.workflows.tool import workflow_form
from ai_platform_engineering.settings import Settings, load_settings
from tests.runs.graphs import context
from tests.tool_sessions import ask


@dataclass
class Deployment:
    """The whole system over the sandbox. `summaries` are the prompts of the last turn of each workflow."""

    settings: Settings
    summaries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.system = PlatformEngineerDeepAgent(self.settings, models=self._model)

    def _model(self, settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
        def part(cue: ModelInput) -> Turn:
            self.summaries.append(str(cue.messages[-1].text))
            return Turn("Done.")

        return ScriptedChatModel(script=part) if manifest is None else model_for(settings, manifest)

    async def run(self, name: str, **values: Any) -> list[str]:
        """What became of the steps, after the form was filled in with these values."""
        workflow = self.system.workflows[name]
        filled = fill(workflow_form(workflow, {}), values)
        assert isinstance(filled, FilledForm), filled
        config: Any = {"configurable": {"thread_id": f"t-{len(self.summaries)}"}}
        await self.system.graph.ainvoke({"messages": [HumanMessage(workflow.title)]}, config, context=context())
        (waiting,) = (await self.system.graph.aget_state(config)).interrupts
        resume = Command(resume={waiting.id: answer_data(Submitted(filled.values))})
        await self.system.graph.ainvoke(resume, config, context=context())
        return self.summaries[-1].splitlines()[1:-1]

    async def call(self, product: str, tool: str, **arguments: Any) -> Any:
        server = import_module(f"ai_platform_engineering.sandbox.{product}").server(self.settings)
        return await ask(server, tool, arguments)


@pytest.fixture
async def deployment(tmp_path: Path) -> AsyncIterator[Deployment]:
    environ = {"DATA_DIR": str(tmp_path), "OFFLINE_MODEL_DELAY": "0", "REQUIRE_APPROVAL": "never"}
    deployment = Deployment(load_settings(environ, env_file=None))
    await deployment.system.start()
    try:
        yield deployment
    finally:
        await deployment.system.aclose()


async def test_every_tool_a_step_calls_is_there_and_takes_its_arguments(deployment: Deployment) -> None:
    steps = [step for workflow in deployment.system.workflows.values() for step in workflow.steps if step.tool]
    assert len(deployment.system.workflows) == 4
    assert steps
    for step in steps:
        (tool,) = (tool for tool in deployment.system.mcp.tools(step.agent) if tool.name == step.tool)
        schema = json.loads(json.dumps(tool.args_schema))
        assert set(step.arguments) <= set(schema["properties"]), step.name
        assert set(schema.get("required", ())) <= set(step.arguments), step.name


async def test_create_github_repo(deployment: Deployment) -> None:
    url = "https://github.acme.example/acme/demo"
    assert await deployment.run("create_github_repo", repository="demo", private=False) == [
        f"- Create the repository (github): completed, url: {url}"
    ]
    assert (await deployment.call("github", "get_repository", repository="demo"))["visibility"] == "public"
    (again,) = await deployment.run("create_github_repo", repository="demo")
    assert "failed: A repository acme/demo exists already" in again


async def test_onboard_service(deployment: Deployment) -> None:
    lines = await deployment.run("onboard_service", service="loyalty", description="Points", ticket_project="PLAT")
    assert lines == [
        "- Create the repository (github): completed, url: https://github.acme.example/acme/loyalty",
        "- Create the application (argocd): completed, url: https://argocd.acme.example/applications/loyalty",
        "- Open a ticket (jira): completed, key: PLAT-49",
    ]
    application = await deployment.call("argocd", "get_application", application="loyalty")
    assert (application["project"], application["health"]) == ("shop", "Healthy")
    ticket = await deployment.call("jira", "get_issue", issue_key="PLAT-49")
    assert ticket["summary"] == "Onboard loyalty"
    assert "acme/loyalty" in ticket["description"]


async def test_onboarding_what_exists_stops_where_it_exists(deployment: Deployment) -> None:
    first, *rest = await deployment.run("onboard_service", service="checkout")
    assert "failed: A repository acme/checkout exists already" in first
    assert [line.partition(": ")[2] for line in rest] == ["not done, because an earlier step failed"] * 2


async def test_roll_back_application(deployment: Deployment) -> None:
    lines = await deployment.run(
        "roll_back_application", application="payments-api", reason="The tag is wrong.", ticket="SHOP-118"
    )
    assert lines == [
        "- Roll the application back (argocd): completed, application: payments-api, revision: f6024cd, "
        "health: Healthy",
        "- Comment on the ticket (jira): completed, key: SHOP-118",
        "- Open a ticket (jira): skipped, it was not asked for",
    ]
    comments = (await deployment.call("jira", "get_issue", issue_key="SHOP-118"))["comments"]
    assert comments[-1]["body"] == "payments-api was rolled back to revision f6024cd. Reason: The tag is wrong."


async def test_roll_back_with_a_new_ticket(deployment: Deployment) -> None:
    lines = await deployment.run(
        "roll_back_application", application="payments-api", revision="1", reason="Too new.", new_ticket=True
    )
    assert lines[1:] == [
        "- Comment on the ticket (jira): skipped, it was not asked for",
        "- Open a ticket (jira): completed, key: SHOP-120",
    ]


async def test_a_comment_on_a_ticket_that_is_not_there_is_a_failed_step(deployment: Deployment) -> None:
    lines = await deployment.run("roll_back_application", application="payments-api", reason="x", ticket="SHOP-999")
    assert lines[1].startswith("- Comment on the ticket (jira): failed: There is no issue 'SHOP-999'")


async def test_escalate_incident(deployment: Deployment) -> None:
    assert await deployment.run("escalate_incident", incident="P4711", reason="No answer yet.", priority="Highest") == [
        "- Escalate the incident (pagerduty): completed, assignee: Sam Okafor",
        "- Open a ticket (jira): completed, key: SHOP-120",
    ]
    incident = await deployment.call("pagerduty", "get_incident", incident_id="P4711")
    assert incident["assignee"] == "Sam Okafor"
    assert incident["log"][-1]["text"].endswith("by Alex Rivera. No answer yet.")
    ticket = await deployment.call("jira", "get_issue", issue_key="SHOP-120")
    assert (ticket["priority"], ticket["summary"]) == ("Highest", "Incident P4711 was escalated")


async def test_an_incident_that_cannot_be_escalated_gets_no_ticket(deployment: Deployment) -> None:
    first, second = await deployment.run("escalate_incident", incident="P9999", reason="x")
    assert first.startswith("- Escalate the incident (pagerduty): failed: There is no incident 'P9999'")
    assert second.endswith("not done, because an earlier step failed")


def test_the_example_in_the_documentation_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs/workflows.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```text\n(name: .*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "example.yaml").write_text(example, encoding="utf-8")
    settings = load_settings({"DATA_DIR": str(tmp_path), "WORKFLOWS_DIR": str(tmp_path)}, env_file=None)
    assert "report_outage" in ready_workflows(
        workflow_offers(known_workflows(settings), AgentRegistry.load(settings).entries)
    )


def test_the_documentation_names_every_workflow_and_every_key() -> None:
    page = (Path(__file__).parents[4] / "docs/workflows.md").read_text(encoding="utf-8")
    settings = load_settings({}, env_file=None)
    keys = {*Workflow.model_fields, *Input.model_fields, *Step.model_fields, *Condition.model_fields}
    assert {word for word in {*known_workflows(settings), *keys} if f"`{word}`" not in page} == set()
