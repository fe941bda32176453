"""The approval gate: a tool call that needs a person waits for one, and runs as that person has decided."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command, interrupt

from ai_platform_engineering.utils.approvals.arguments import ShownInPartError, edited_arguments, shown_arguments
from ai_platform_engineering.utils.approvals.edited_call import with_edited_arguments
from ai_platform_engineering.utils.approvals.form import approval_form
from ai_platform_engineering.utils.approvals.grants import (
    Grant,
    add_grants,
    covers,
    leading_arguments,
    same_value,
)
from ai_platform_engineering.utils.approvals.policy import Effects
from ai_platform_engineering.utils.approvals.remembered import GRANTS
from ai_platform_engineering.utils.forms.answers import Answer, Approved, Dismissed, Rejected, read_answer
from ai_platform_engineering.utils.forms.questions import question_data

Result = ToolMessage | Command[Any]
Handler = Callable[[ToolCallRequest], Awaitable[Result]]

_NOT_UNDERSTOOD: Final = "the answer to the form was not understood"
_CHANGED_IN_PART: Final = "a value that was shown only in part was changed in part; it has to be given whole"


class ApprovalState(AgentState[Any]):
    approvals: NotRequired[Annotated[list[Grant], add_grants]]


class ApprovalGate(AgentMiddleware[ApprovalState, Any, Any]):
    """Holds calls of those tools that `needs` names until a person has approved them, or has approved their kind.

    Grants are in the graph's state, and in the request context where they come from the conversation around it.
    """

    state_schema = ApprovalState

    def __init__(self, agent: str, needs: Callable[[BaseTool], bool], *, title: str = "") -> None:
        super().__init__()
        self._agent = agent
        self._needs = needs
        self._title = title or agent

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Result:
        tool = request.tool
        if tool is None or not self._needs(tool):
            return await handler(request)
        args = request.tool_call["args"]
        if any(covers(grant, self._agent, tool.name, args) for grant in _grants(request)):
            return await handler(request)
        match self._ask(tool, args):
            case Approved(edit):
                try:
                    approved = edited_arguments(args, edit or {}, _schema(tool))
                except ShownInPartError:
                    return _rejected(request, _CHANGED_IN_PART)
                return await _called(request, handler, approved)
            case Rejected(reason) | Dismissed(reason):
                return _rejected(request, reason)
            case _:
                return _rejected(request, _NOT_UNDERSTOOD)

    def _ask(self, tool: BaseTool, args: Mapping[str, Any]) -> Answer | None:
        # Runs again from its start whenever the graph goes on, so nothing but the question may happen before it.
        leading = leading_arguments(args, _schema(tool))
        form = approval_form(self._agent, self._title, tool.name, args, leading, Effects.of(tool))
        value = interrupt(question_data(form))
        return read_answer(value) if isinstance(value, Mapping) else None


async def _called(request: ToolCallRequest, handler: Handler, args: dict[str, Any]) -> Result:
    """The result of the call with these arguments, which go with it if they are not the model's own."""
    if same_value(args, request.tool_call["args"]):
        return await handler(request)
    result = await handler(request.override(tool_call={**request.tool_call, "args": args}))
    return _noted(result, shown_arguments(args))


def _grants(request: ToolCallRequest) -> Iterable[Grant]:
    yield from request.state.get(GRANTS) or ()
    yield from getattr(request.runtime.context, GRANTS, ())


def _rejected(request: ToolCallRequest, reason: str) -> ToolMessage:
    why = f": {reason.strip()}" if reason.strip() else ""
    call = request.tool_call
    return ToolMessage(
        f"A person rejected this call{why or '.'}",
        name=call["name"],
        tool_call_id=call["id"] or "",
        status="error",
        artifact={"reason": f"rejected by a person{why}"},
    )


def _noted(result: Result, args: Mapping[str, Any]) -> Result:
    match result:
        case Command(update={"messages": [*messages], **others}):
            return replace(result, update={**others, "messages": [_noted(message, args) for message in messages]})
        case ToolMessage():
            return with_edited_arguments(result, args)
        case _:
            return result


def _schema(tool: BaseTool) -> Mapping[str, Any]:
    schema = tool.args_schema
    return schema if isinstance(schema, dict) else tool.get_input_jsonschema()
