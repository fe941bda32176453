"""Loads workflows, finds one by its name, and determines which can run with the enabled agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.multi_agents.platform_engineer.workflows import WorkflowError
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import (
    Workflow,
    read_workflow,
)
from ai_platform_engineering.settings import Settings

_REQUEST: Final = re.compile(r"(?:(?:start|run) )?(?:the )?(?:workflow )?(?P<name>.+?)(?: workflow)?")
_INPUTS: Final = {"inputs": {"__all__": {"name", "type", "description", "required", "default", "options"}}}


@dataclass(frozen=True, slots=True)
class WorkflowOffer:
    """A workflow, and the reason why it cannot be started, if any."""

    workflow: Workflow
    reason: str | None = None

    def facts(self) -> dict[str, object]:
        """JSON form for lists of workflows."""
        return {
            "name": self.workflow.name,
            "title": self.workflow.title,
            "description": self.workflow.description,
            "agents": list(self.workflow.agents()),
            "ready": self.reason is None,
            "reason": self.reason,
        }

    def details(self) -> dict[str, object]:
        """JSON form with the inputs and the steps, as people see them before they start the workflow."""
        steps = [
            {
                "title": step.title,
                "agent": step.agent,
                "tool": step.tool,
                "when": None if step.when is None else step.when.text(),
            }
            for step in self.workflow.steps
        ]
        return {**self.facts(), **self.workflow.model_dump(mode="json", include=_INPUTS), "steps": steps}


def library_directory() -> Path:
    """Directory of the built-in workflows."""
    return Path(__file__).parent / "library"


def known_workflows(settings: Settings) -> dict[str, Workflow]:
    """The built-in workflows and those in `WORKFLOWS_DIR`, which replace built-in ones of the same name."""
    workflows = _load_directory(library_directory())
    if settings.workflows_dir is not None:
        workflows |= _load_directory(settings.workflows_dir)
    return dict(sorted(workflows.items()))


def workflow_offers(workflows: Mapping[str, Workflow], agents: Iterable[AgentEntry]) -> list[WorkflowOffer]:
    entries = {entry.name: entry for entry in agents}
    return [WorkflowOffer(workflow, _reason(workflow, entries)) for workflow in workflows.values()]


def ready_workflows(offers: Iterable[WorkflowOffer]) -> dict[str, Workflow]:
    """The workflows whose agents are all enabled, by name."""
    return {offer.workflow.name: offer.workflow for offer in offers if offer.reason is None}


def workflow_lines(workflows: Iterable[Workflow]) -> list[str]:
    """One line per workflow for the supervisor's prompt."""
    return [_line(workflow) for workflow in workflows]


def named_workflow(text: str, workflows: Iterable[Workflow]) -> Workflow | None:
    """The workflow whose name or title `text` consists of, as in `Create GitHub Repo` or `run create-github-repo`."""
    normalized = _normalize(text)
    request = _REQUEST.fullmatch(normalized)
    names = (normalized, request["name"]) if request else (normalized,)
    candidates = list(workflows)
    return next(
        (
            workflow
            for name in names
            for workflow in candidates
            if name and name in (_normalize(workflow.title), _normalize(workflow.name))
        ),
        None,
    )


def _line(workflow: Workflow) -> str:
    facts = {
        "keywords": ", ".join(workflow.keywords),
        "inputs": ", ".join(declared.name for declared in workflow.inputs),
    }
    details = "; ".join(f"{name}: {value}" for name, value in facts.items() if value)
    line = f"- {workflow.name}: {workflow.title}. {workflow.description}"
    return f"{line} ({details})" if details else line


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


def _normalize(text: str) -> str:
    return " ".join(re.sub(r"[-_\s]+", " ", text).strip(" .!?\"'`").casefold().split())
