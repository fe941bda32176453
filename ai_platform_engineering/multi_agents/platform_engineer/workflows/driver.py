"""Runs the steps of a workflow: a middleware that replaces the model's turns while a workflow is running.

Each turn is computed from the workflow's state alone, so the steps run exactly in the order of the file. After the last
step, or after a failure, the model gets one turn without tools to report the outcome.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from ai_platform_engineering.compat.agent_middleware import AGENT_ARGUMENT, DELEGATION_TOOL
from ai_platform_engineering.graphs.last_turn import answer_only, gathered, without_tools
from ai_platform_engineering.graphs.workflow_step import STEP
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Step, Workflow
from ai_platform_engineering.multi_agents.platform_engineer.workflows.loader import named_workflow
from ai_platform_engineering.multi_agents.platform_engineer.workflows.progress import (
    WORKFLOW_KEY,
    WorkflowChannels,
    WorkflowState,
    arguments,
    description,
    failed,
    needs_plan,
    next_step,
    outcomes,
    plan_arguments,
    planned,
    running_step,
    started,
    succeeded,
    workflow_of,
)
from ai_platform_engineering.multi_agents.platform_engineer.workflows.tool import START_TOOL, start_tool
from ai_platform_engineering.runs.failures import short_reason
from ai_platform_engineering.runs.plan import PLAN_TOOL

_CALL_ID: Final = re.compile(r"workflow-(\d+)")
# Graph steps of the call, the tools, and the next turn, which may have to be the answer.
_STEPS_FOR_A_CALL: Final = 3
_NO_RESULT: Final = "it ended without a result"
_ANSWER_NOW: Final = (
    "Write the answer for the person now, from these outcomes and the results above: what was done, with links and "
    "keys, and what was not done and why. Do not call any tool. Claim nothing that is not among them."
)
_CLEARED: Final[dict[str, Any]] = {WORKFLOW_KEY: None, STEP: None}

Result = ToolMessage | Command[Any]
ModelTurn = ModelResponse[Any] | ExtendedModelResponse[Any]


class WorkflowDriver(AgentMiddleware[WorkflowChannels, Any, Any]):
    """`workflows` are the available ones by name. The middleware adds the tool that starts them."""

    state_schema = WorkflowChannels

    def __init__(self, workflows: Mapping[str, Workflow]) -> None:
        super().__init__()
        self._workflows = dict(workflows)
        self.tools = [start_tool(self._workflows)] if self._workflows else []

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        call = request.tool_call
        if call["name"] == START_TOOL and call["id"] != _first_start(request.state["messages"]):
            return ToolMessage(
                "Only one workflow can be started at a time. Start this one when the other has ended.",
                name=START_TOOL,
                tool_call_id=call["id"] or "",
                status="error",
                artifact={"reason": "another workflow is being started"},
            )
        return await handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelTurn:
        state = cast("WorkflowState | None", request.state.get(WORKFLOW_KEY))
        if state is not None and not isinstance(request.messages[-1], HumanMessage):
            return await self._next_turn(state, request, handler)
        # A new question discards a workflow that was interrupted.
        cleared = _CLEARED if state is not None else None
        if (workflow := self._requested_workflow(request.messages)) is not None:
            return _call(request, START_TOOL, {"name": workflow.name, "values": {}}, cleared)
        response = await handler(request)
        return ExtendedModelResponse(response, Command(update=dict(cleared))) if cleared else response

    def _requested_workflow(self, messages: Sequence[AnyMessage]) -> Workflow | None:
        last = messages[-1] if messages else None
        return named_workflow(str(last.text), self._workflows.values()) if isinstance(last, HumanMessage) else None

    async def _next_turn(
        self,
        state: WorkflowState,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelTurn:
        workflow = workflow_of(state)
        state = _with_result(workflow, state, request.messages)
        step = next_step(workflow, state)
        if _has_steps_left(request):
            if needs_plan(state):
                return _call(request, PLAN_TOOL, plan_arguments(workflow, state), {WORKFLOW_KEY: planned(state)})
            if step is not None:
                delegation = {"description": description(step, state), AGENT_ARGUMENT: step.agent}
                update = {WORKFLOW_KEY: started(state, step), STEP: _step_data(step, state)}
                return _call(request, DELEGATION_TOOL, delegation, update)
        summary = "\n".join(_ending(workflow, state, unfinished=step is not None))
        answer = await handler(without_tools(request, f"{summary}\n{_ANSWER_NOW}"))
        written = answer_only(answer, lambda: gathered(request, summary))
        return ExtendedModelResponse(written, Command(update=dict(_CLEARED)))


def _ending(workflow: Workflow, state: WorkflowState, *, unfinished: bool) -> Iterator[str]:
    if "failed" in state["statuses"].values():
        how = "was stopped because a step failed"
    elif unfinished:
        how = "was stopped at the step limit"
    else:
        how = "has ended"
    yield f"The workflow {workflow.title} {how}. What became of its steps:"
    yield from outcomes(workflow, state)


def _with_result(workflow: Workflow, state: WorkflowState, messages: Sequence[AnyMessage]) -> WorkflowState:
    """The state with the result of the running step, if a step is running."""
    step = running_step(workflow, state)
    if step is None:
        return state
    result = _last_result(messages)
    if result is None:
        return failed(state, step, _NO_RESULT)
    if result.status == "error":
        return failed(state, step, _reason(result))
    return succeeded(workflow, state, step, str(result.text))


def _last_result(messages: Sequence[AnyMessage]) -> ToolMessage | None:
    """The result of the running step: while a workflow runs, the last call is always its own."""
    last = messages[-1] if messages else None
    return last if isinstance(last, ToolMessage) and _CALL_ID.fullmatch(last.tool_call_id) else None


def _reason(result: ToolMessage) -> str:
    given = result.artifact.get("reason") if isinstance(result.artifact, Mapping) else None
    return short_reason(str(given or result.text)) or "it reported an error"


def _step_data(step: Step, state: WorkflowState) -> dict[str, Any]:
    if step.tool is None:
        return {"instruction": True}
    return {"tool": step.tool, "arguments": arguments(step, state)}


def _call(
    request: ModelRequest[Any], tool: str, given: Mapping[str, Any], update: Mapping[str, Any] | None = None
) -> ModelTurn:
    """A model turn with one tool call."""
    call_id = f"workflow-{_next_number(request.messages)}"
    message = AIMessage("", tool_calls=[{"name": tool, "args": dict(given), "id": call_id, "type": "tool_call"}])
    response = ModelResponse(result=[message])
    return ExtendedModelResponse(response, Command(update=dict(update))) if update else response


def _has_steps_left(request: ModelRequest[Any]) -> bool:
    remaining = request.state.get("remaining_steps")
    return not isinstance(remaining, int) or remaining >= _STEPS_FOR_A_CALL


def _next_number(messages: Sequence[AnyMessage]) -> int:
    """A number that no call in the conversation has: a call whose id already has a result would not be made."""
    ids = (call["id"] or "" for message in messages if isinstance(message, AIMessage) for call in message.tool_calls)
    return 1 + max((int(match[1]) for call_id in ids if (match := _CALL_ID.fullmatch(call_id))), default=0)


def _first_start(messages: Sequence[AnyMessage]) -> str | None:
    """The id of the first call in the last turn that starts a workflow."""
    turn = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    calls = turn.tool_calls if turn is not None else ()
    return next((call["id"] for call in calls if call["name"] == START_TOOL), None)
