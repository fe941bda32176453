"""Which workflows there are, and which of them can be offered with the agents that are enabled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import (
    Workflow,
    read_workflow,
)
from ai_platform_engineering.multi_agents.platform_engineer.workflows.errors import WorkflowError
from ai_platform_engineering.settings import Settings


@dataclass(frozen=True, slots=True)
class Offer:
    """A workflow, and why it cannot be started, if it cannot."""

    workflow: Workflow
    reason: str | None = None

    def facts(self) -> dict[str, object]:
        """For programs that list workflows."""
        return {
            "name": self.workflow.name,
            "title": self.workflow.title,
            "description": self.workflow.description,
            "agents": list(self.workflow.agents()),
            "ready": self.reason is None,
            "reason": self.reason,
        }


def library_directory() -> Path:
    """Where the workflows that come with the product are."""
    return Path(__file__).parent / "library"


def known_workflows(settings: Settings) -> dict[str, Workflow]:
    """The workflows that come with the product and those of `WORKFLOWS_DIR`, which replace ours by name."""
    workflows = _load_directory(library_directory())
    if settings.workflows_dir is not None:
        workflows |= _load_directory(settings.workflows_dir)
    return dict(sorted(workflows.items()))


def offers(workflows: Mapping[str, Workflow], agents: Iterable[AgentEntry]) -> list[Offer]:
    entries = {entry.name: entry for entry in agents}
    return [Offer(workflow, _reason(workflow, entries)) for workflow in workflows.values()]


def ready(offers: Iterable[Offer]) -> dict[str, Workflow]:
    """The workflows whose agents are all enabled, by name."""
    return {offer.workflow.name: offer.workflow for offer in offers if offer.reason is None}


def workflow_lines(workflows: Iterable[Workflow]) -> list[str]:
    """How the workflows are presented to the supervisor's model, one line each."""
    return [_line(workflow) for workflow in workflows]


def _line(workflow: Workflow) -> str:
    facts = {
        "keywords": ", ".join(workflow.keywords),
        "inputs": ", ".join(declared.name for declared in workflow.inputs),
    }
    told = "; ".join(f"{name}: {value}" for name, value in facts.items() if value)
    line = f"- {workflow.name}: {workflow.title}. {workflow.description}"
    return f"{line} ({told})" if told else line


def _load_directory(directory: Path) -> dict[str, Workflow]:
    workflows: dict[str, Workflow] = {}
    origins: dict[str, Path] = {}
    for file in sorted(directory.glob("*.yaml")):
        workflow = read_workflow(file)
        if workflow.name in workflows:
            other = origins[workflow.name]
            raise WorkflowError(f"{file}: name: {workflow.name!r} is also the name in {other}; each needs its own.")
        workflows[workflow.name] = workflow
        origins[workflow.name] = file
    return workflows


def _reason(workflow: Workflow, entries: Mapping[str, AgentEntry]) -> str | None:
    problems = []
    for agent in workflow.agents():
        entry = entries.get(agent)
        if entry is None:
            problems.append(f"there is no agent {agent}")
        elif not entry.enabled:
            problems.append(f"the agent {agent} is off ({entry.why})")
    return "; ".join(problems) or None
