"""The tool that starts a workflow: it shows the form of the inputs. The driver then runs the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field

from ai_platform_engineering.events import SUPERVISOR, Form, FormField
from ai_platform_engineering.forms.answers import Dismissed, Rejected, Submitted, read_answer
from ai_platform_engineering.forms.questions import question_data
from ai_platform_engineering.forms.validation import InvalidValue, is_blank, validated
from ai_platform_engineering.graphs.ask_tool import dismissed
from ai_platform_engineering.graphs.coroutine_tool import CoroutineTool
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Input, Workflow, suggestion
from ai_platform_engineering.multi_agents.platform_engineer.workflows.progress import WORKFLOW_KEY, begin
from ai_platform_engineering.runs.plan import WORKFLOW_TOOL

START_TOOL: Final = WORKFLOW_TOOL

_DESCRIPTION: Final = (
    "Start one of the workflows. The person is shown its form, filled in with `values`, and decides; the steps then "
    "run by themselves. Use it, alone in its turn, when someone wants what a workflow does."
)


class _StartArguments(BaseModel):
    name: str = Field(description="Name of the workflow.")
    values: dict[str, Any] = Field(
        default_factory=dict,
        description="What the person has already said, by name of input. Nothing else: what is missing is asked for.",
    )


def workflow_form(workflow: Workflow, proposed: Mapping[str, Any]) -> Form:
    """The form for the workflow's inputs. Proposed values that do not fit are dropped."""
    return Form(
        form_id="",
        title=workflow.title,
        description=workflow.description,
        fields=tuple(_field(declared, proposed.get(declared.name)) for declared in workflow.inputs),
        agent=SUPERVISOR,
    )


def start_tool(workflows: Mapping[str, Workflow]) -> BaseTool:
    async def start(name: str, runtime: ToolRuntime, values: dict[str, Any] | None = None) -> Command[Any] | str:
        workflow = workflows.get(name)
        if workflow is None:
            raise ToolException(f"There is no workflow {name!r}; {suggestion(name, list(workflows))}.")
        inputs: Mapping[str, Any] = {}
        if workflow.inputs:
            # The code up to here runs again when the answer arrives, so it must have no side effects.
            answer = _read(interrupt(question_data(workflow_form(workflow, values or {}))))
            match answer:
                case Submitted(submitted):
                    inputs = submitted
                case Dismissed(reason) | Rejected(reason):
                    return f"{dismissed(reason)} The workflow {workflow.title} was not started; nothing was done."
                case _:
                    raise ToolException(
                        f"The answer to the form could not be understood, so the workflow {workflow.title} was not "
                        "started. Ask for it again."
                    )
        message = ToolMessage(f"The workflow {workflow.title} has started.", tool_call_id=runtime.tool_call_id or "")
        return Command(update={WORKFLOW_KEY: begin(workflow, inputs), "messages": [message]})

    return CoroutineTool.from_function(
        coroutine=start, name=START_TOOL, description=_DESCRIPTION, args_schema=_StartArguments, infer_schema=False
    )


def _field(declared: Input, proposed: Any) -> FormField:
    field = declared.field()
    value = None if is_blank(proposed) else validated(field, proposed)
    return field if isinstance(value, InvalidValue) else replace(field, value=value)


def _read(answer: Any) -> Any:
    return read_answer(answer) if isinstance(answer, Mapping) else None
