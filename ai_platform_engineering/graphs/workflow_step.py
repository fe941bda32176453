"""A workflow step inside an agent's graph.

The step is part of the delegation and arrives in the state. A step that names a tool calls it without the model, and
the tool's result is the answer. In a step in words the model works as usual, but the step fails if a tool failed and
did not succeed later, whatever the model's answer says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest, ModelResponse, OmitFromOutput
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool

from ai_platform_engineering.runs.skill_calls import SKILL_TOOLS
from ai_platform_engineering.utils.errors import ReadableError

STEP: Final = "step"


class StepFailedError(ReadableError):
    """A workflow step failed; the text says why."""

    code = "agent"


class StepState(AgentState[Any]):
    step: Annotated[NotRequired[Mapping[str, Any] | None], OmitFromOutput]


class WorkflowStep(AgentMiddleware[StepState, Any, Any]):
    state_schema = StepState

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        step = request.state.get(STEP)
        if not isinstance(step, Mapping):
            return await handler(request)
        work = since_question(request.messages)
        if "tool" in step:
            return ModelResponse(result=[_tool_step_turn(step, work, request.tools)])
        response = await handler(request)
        answered = all(not message.tool_calls for message in response.result if isinstance(message, AIMessage))
        if answered and (failed := _unrecovered_failure(work)) is not None:
            raise StepFailedError(_reason(failed))
        return response


def _tool_step_turn(step: Mapping[str, Any], work: Sequence[AnyMessage], tools: Sequence[Any]) -> AIMessage:
    result = next((message for message in reversed(work) if isinstance(message, ToolMessage)), None)
    if result is not None:
        if result.status == "error":
            raise StepFailedError(_reason(result))
        return AIMessage(str(result.text) or "Done.")
    name = str(step["tool"])
    if name not in {tool.name for tool in tools if isinstance(tool, BaseTool)}:
        raise StepFailedError(f"There is no tool named {name!r} here.")
    return AIMessage("", tool_calls=[{"name": name, "args": dict(step.get("arguments") or {}), "id": "step-1"}])


def since_question(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """The messages after the last question."""
    last = max((place for place, message in enumerate(messages) if message.type == "human"), default=-1)
    return messages[last + 1 :]


def _unrecovered_failure(work: Sequence[AnyMessage]) -> ToolMessage | None:
    """The last failed call of a tool that has not succeeded since. A failed read of a skill does not count."""
    failed: dict[str | None, ToolMessage] = {}
    for message in work:
        if isinstance(message, ToolMessage) and message.name not in SKILL_TOOLS:
            failed.pop(message.name, None)
            if message.status == "error":
                failed[message.name] = message
    return next(reversed(failed.values()), None)


def _reason(message: ToolMessage) -> str:
    """The reason for people if there is one, else the tool's output."""
    artifact = message.artifact
    reason = artifact.get("reason") if isinstance(artifact, Mapping) else None
    return str(reason or message.text) or "The tool failed without saying why."
