"""The state of a running workflow, as a value in the graph's state. Pure functions return a new state.

The state includes the definition, so a workflow that waits for a form over a restart continues unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr

from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Step, Workflow
from ai_platform_engineering.multi_agents.platform_engineer.workflows.templates import Values, references, render

WORKFLOW_KEY: Final = "workflow"

StepProgress = Literal["pending", "running", "completed", "failed", "skipped"]

_PLAN_STATUS = {"pending": "pending", "running": "in_progress", "completed": "completed", "failed": "failed"}


class WorkflowState(TypedDict):
    """JSON only. `planned` has the names of the steps that the last written plan omits because they are skipped."""

    name: str
    definition: dict[str, Any]
    inputs: dict[str, Any]
    outputs: dict[str, dict[str, Any]]
    statuses: dict[str, StepProgress]
    reason: str | None
    planned: list[str] | None


class WorkflowChannels(AgentState[Any]):
    """State channels for workflows. `workflow` is the supervisor's own. `step` goes to the agent with a delegation that
    is a step: `{"tool": ..., "arguments": {...}}` for a tool call, `{"instruction": true}` for an instruction."""

    workflow: NotRequired[Annotated[WorkflowState | None, PrivateStateAttr]]
    step: NotRequired[dict[str, Any] | None]


def begin(workflow: Workflow, inputs: Mapping[str, Any]) -> WorkflowState:
    """The state before the first step. Values that are not inputs of the workflow are dropped."""
    known = {declared.name for declared in workflow.inputs}
    state = WorkflowState(
        name=workflow.name,
        definition=workflow.model_dump(mode="json", exclude_unset=True),
        inputs={name: value for name, value in inputs.items() if name in known},
        outputs={},
        statuses={step.name: "pending" for step in workflow.steps},
        reason=None,
        planned=None,
    )
    return _with_skips(workflow, state)


def workflow_of(state: WorkflowState) -> Workflow:
    return Workflow.model_validate(state["definition"])


def running_step(workflow: Workflow, state: WorkflowState) -> Step | None:
    return next((step for step in workflow.steps if state["statuses"][step.name] == "running"), None)


def next_step(workflow: Workflow, state: WorkflowState) -> Step | None:
    """The step to run next. None while a step runs, after a failure, and at the end."""
    if not {"running", "failed"}.isdisjoint(state["statuses"].values()):
        return None
    return next((step for step in workflow.steps if state["statuses"][step.name] == "pending"), None)


def started(state: WorkflowState, step: Step) -> WorkflowState:
    return _with_status(state, step, "running")


def succeeded(workflow: Workflow, state: WorkflowState, step: Step, result: str) -> WorkflowState:
    """The state after the step returned `result`. The step fails if the result lacks a declared output.

    In that case the plan, which already shows the step as completed, is written again.
    """
    outputs: dict[str, Any] = {}
    for name, selector in step.outputs.items():
        value = _value_at_path(result, selector) if step.tool is not None else _match_in_text(result, selector)
        if value is None:
            reason = f"{step.tool or step.agent} finished, but its result has no {name}"
            return {**failed(state, step, reason), "planned": None}
        outputs[name] = value
    state = _with_status(state, step, "completed")
    return _with_skips(workflow, {**state, "outputs": {**state["outputs"], step.name: outputs}})


def failed(state: WorkflowState, step: Step, reason: str) -> WorkflowState:
    return {**_with_status(state, step, "failed"), "reason": reason}


def arguments(step: Step, state: WorkflowState) -> dict[str, Any]:
    """The arguments of the step's tool call."""
    rendered: dict[str, Any] = render(step.arguments, _values(state))
    return rendered


def description(step: Step, state: WorkflowState) -> str:
    """The step as text for the agent. A tool step has one too, for agents that do not know the `step` channel."""
    if step.instruction is not None:
        return str(render(step.instruction, _values(state)) or "")
    given = json.dumps(arguments(step, state), ensure_ascii=False)
    return f"{step.title}: call the tool {step.tool} with the arguments {given} and report its result."


def skipped_steps(state: WorkflowState) -> list[str]:
    return [name for name, status in state["statuses"].items() if status == "skipped"]


def needs_plan(state: WorkflowState) -> bool:
    """Whether the plan must be written: at first, after a condition was decided, or after an unusable result."""
    skipped = skipped_steps(state)
    if state["planned"] is not None and "failed" in state["statuses"].values():
        return False
    return state["planned"] != skipped and len(skipped) < len(state["statuses"])


def planned(state: WorkflowState) -> WorkflowState:
    return {**state, "planned": skipped_steps(state)}


def plan_arguments(workflow: Workflow, state: WorkflowState) -> dict[str, Any]:
    """The arguments of the plan tool: all steps except skipped ones."""
    statuses = state["statuses"]
    steps = [
        {"content": step.title, "agent": step.agent, "status": _PLAN_STATUS[statuses[step.name]]}
        for step in workflow.steps
        if statuses[step.name] != "skipped"
    ]
    return {"title": workflow.title, "steps": steps}


def outcomes(workflow: Workflow, state: WorkflowState) -> Iterator[str]:
    """One line per step with its outcome."""
    for step in workflow.steps:
        yield f"- {step.title} ({step.agent}): {_outcome(step, state)}"


def _outcome(step: Step, state: WorkflowState) -> str:
    match state["statuses"][step.name]:
        case "completed":
            outputs = state["outputs"].get(step.name, {})
            given = ", ".join(f"{name}: {value}" for name, value in outputs.items())
            return f"completed, {given}" if given else "completed"
        case "failed":
            return f"failed: {state['reason'] or 'no reason was given'}"
        case "skipped":
            return "skipped, it was not asked for"
        case _ if "failed" in state["statuses"].values():
            return "not done, because an earlier step failed"
        case _:
            return "not done"


def _with_status(state: WorkflowState, step: Step, status: StepProgress) -> WorkflowState:
    return {**state, "statuses": {**state["statuses"], step.name: status}}


def _with_skips(workflow: Workflow, state: WorkflowState) -> WorkflowState:
    """Skip pending steps whose condition is false. A condition is decided once the steps it refers to have ended."""
    for step in workflow.steps:
        if state["statuses"][step.name] == "pending" and step.when is not None:
            source_steps = {reference.step for reference in references(step.when.value) if reference.step is not None}
            decided = all(state["statuses"][source] in ("completed", "skipped") for source in source_steps)
            if decided and not step.when.holds(render(step.when.value, _values(state))):
                state = _with_status(state, step, "skipped")
    return state


def _values(state: WorkflowState) -> Values:
    return Values(state["inputs"], state["outputs"])


def _value_at_path(result: str, path: str) -> Any:
    try:
        value = json.loads(result)
    except ValueError:
        return None
    for key in path.split("."):
        match value:
            case Mapping():
                value = value.get(key)
            case list() if key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            case _:
                return None
    return value


def _match_in_text(answer: str, pattern: str) -> str | None:
    match = re.search(pattern, answer)
    if match is None:
        return None
    return match[1] if match.re.groups else match[0]
