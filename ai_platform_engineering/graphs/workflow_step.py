"""The step of a workflow, as the agent sees it: a tool that is called as it was declared, or work that may not fail.

The step comes with the delegation, in the state. A step that names a tool needs no model: the tool's result is the
agent's answer. In a step that is put in words the model works as ever, but a tool that failed and was not made good
fails the step, whatever the model makes of it.
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
    """A step of a workflow could not be done; the text says why."""

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
            return ModelResponse(result=[_direct(step, work, request.tools)])
        response = await handler(request)
        answered = all(not message.tool_calls for message in response.result if isinstance(message, AIMessage))
        if answered and (failed := _not_made_good(work)) is not None:
            raise StepFailedError(_reason(failed))
        return response


def _direct(step: Mapping[str, Any], work: Sequence[AnyMessage], tools: Sequence[Any]) -> AIMessage:
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
    """What the agent has done for the question that it was asked last."""
    last = max((place for place, message in enumerate(messages) if message.type == "human"), default=-1)
    return messages[last + 1 :]


def _not_made_good(work: Sequence[AnyMessage]) -> ToolMessage | None:
    """The last failed call of a tool that has not succeeded since. A skill that could not be read fails no step."""
    failed: dict[str | None, ToolMessage] = {}
    for message in work:
        if isinstance(message, ToolMessage) and message.name not in SKILL_TOOLS:
            failed.pop(message.name, None)
            if message.status == "error":
                failed[message.name] = message
    return next(reversed(failed.values()), None)


def _reason(message: ToolMessage) -> str:
    """The sentence that was written for people, else what the tool said."""
    artifact = message.artifact
    reason = artifact.get("reason") if isinstance(artifact, Mapping) else None
    return str(reason or message.text) or "The tool failed without saying why."
