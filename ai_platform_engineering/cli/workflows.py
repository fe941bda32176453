"""`platform-engineer workflows`: lists and shows workflows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence

from ai_platform_engineering.cli.exit_codes import fail
from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import (
    Input,
    Step,
    Workflow,
    suggestion,
    value_text,
)
from ai_platform_engineering.multi_agents.platform_engineer.workflows.loader import (
    WorkflowOffer,
    known_workflows,
    named_workflow,
    workflow_offers,
)
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.text.plain_text import aligned


class WorkflowLookupError(Exception):
    """The workflow does not exist or cannot be started. The text has the reason."""


def _all_offers(settings: Settings) -> list[WorkflowOffer]:
    return workflow_offers(known_workflows(settings), AgentRegistry.load(settings).entries)


def list_workflows(options: argparse.Namespace, settings: Settings) -> int:
    found = _all_offers(settings)
    if options.json:
        for offer in found:
            print_lines(json.dumps(offer.facts()))
        return 0
    rows = [
        (
            offer.workflow.name,
            "ready" if offer.reason is None else "off",
            offer.workflow.description if offer.reason is None else offer.reason,
        )
        for offer in found
    ]
    for line in aligned(rows):
        print_lines(line)
    return 0


def show_workflow(options: argparse.Namespace, settings: Settings) -> int:
    try:
        offer = _find(_all_offers(settings), options.name)
    except WorkflowLookupError as error:
        return fail(error)
    if options.json:
        whole = offer.workflow.model_dump(mode="json", exclude_unset=True)
        print_lines(json.dumps({**offer.facts(), **whole}, indent=2))
        return 0
    for line in _described(offer):
        print_lines(line)
    return 0


def ready_workflow(settings: Settings, name: str) -> Workflow:
    """The workflow with this name or title, if it can be started."""
    offer = _find(_all_offers(settings), name)
    if offer.reason is not None:
        raise WorkflowLookupError(f"The workflow {offer.workflow.name} cannot be started: {offer.reason}.")
    return offer.workflow


def _find(found: Sequence[WorkflowOffer], name: str) -> WorkflowOffer:
    """The workflow with this name or title."""
    workflow = named_workflow(name, [offer.workflow for offer in found])
    if workflow is None:
        known = [offer.workflow.name for offer in found]
        raise WorkflowLookupError(f"There is no workflow {name!r}; {suggestion(name, known)}.")
    return next(offer for offer in found if offer.workflow is workflow)


def _described(offer: WorkflowOffer) -> Iterator[str]:
    workflow = offer.workflow
    yield f"{workflow.title} ({workflow.name})"
    yield workflow.description
    if offer.reason is not None:
        yield f"It cannot be started: {offer.reason}."
    if workflow.inputs:
        yield ""
        yield "Inputs"
        yield from (f"  {line}" for line in aligned([_input_row(declared) for declared in workflow.inputs]))
    yield ""
    yield "Steps"
    rows = [_step_row(number, step) for number, step in enumerate(workflow.steps, start=1)]
    yield from (f"  {line}" for line in aligned(rows))


def _input_row(declared: Input) -> tuple[str, ...]:
    kind = f"{declared.type}: {', '.join(declared.options)}" if declared.options else declared.type
    if declared.default is not None:
        need = f"default {value_text(declared.default)}"
    else:
        need = "required" if declared.required else "optional"
    return declared.name, kind, need, declared.description


def _step_row(number: int, step: Step) -> tuple[str, ...]:
    how = f"tool {step.tool}" if step.tool is not None else "instruction"
    return f"{number}.", step.title, step.agent, how, "" if step.when is None else f"if {step.when.text()}"
