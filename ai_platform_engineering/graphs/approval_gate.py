"""The approval gate: middleware that runs a tool call, refuses it, or waits for a person to approve it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.types import Command, interrupt

from ai_platform_engineering.approvals.edited_call import with_edited_arguments
from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.approvals.form import approval_form
from ai_platform_engineering.approvals.grants import (
    GRANTS,
    Grant,
    add_grants,
    covers,
    leading_arguments,
)
from ai_platform_engineering.approvals.record import call_digest
from ai_platform_engineering.compat.langgraph import current_task_id
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, read_answer, take_decision_id
from ai_platform_engineering.forms.arguments import (
    MAX_LENGTH,
    ShownInPartError,
    can_be_shown,
    edited_arguments,
    noted_arguments,
    same_value,
)
from ai_platform_engineering.forms.questions import question_data
from ai_platform_engineering.graphs.approval_policy import (
    ApprovalRequired,
    CallAllowed,
    CallRefused,
    Verdict,
    effect_of,
    restricted,
)
from ai_platform_engineering.graphs.coroutine_tool import CoroutineTool
from ai_platform_engineering.graphs.history import OUTCOME_UNKNOWN
from ai_platform_engineering.graphs.untrusted import Taint, UntrustedRules
from ai_platform_engineering.policy.decisions import Decision, PrincipalPolicy
from ai_platform_engineering.utils.a2a_common.request_context import ApprovalLedger
from ai_platform_engineering.utils.errors import ReadableError

Result = ToolMessage | Command[Any]
Handler = Callable[[ToolCallRequest], Awaitable[Result]]
EffectOf = Callable[[BaseTool, Mapping[str, Any]], Effect | None]
"""The effect of a call; None for a built-in tool."""
Judge = Callable[[BaseTool, Mapping[str, Any]], Verdict]
"""Decides about a call of the tool with these arguments."""

_NOT_UNDERSTOOD: Final = "the answer to the form was not understood"
_CHANGED_IN_PART: Final = "a value that was shown only in part was changed in part; it has to be given whole"


_TOO_LONG: Final = (
    f"a person must read all of its arguments before it is approved, and these have more than {MAX_LENGTH:,} "
    "characters; make several smaller calls"
)
_NO_RECORD: Final = "no approval of it is recorded"


class ApprovalState(AgentState[Any]):
    approvals: NotRequired[Annotated[list[Grant], add_grants]]


class ApprovalGate(AgentMiddleware[ApprovalState, Any, Any]):
    """Runs, refuses or interrupts calls, as `judge` decides. A grant for the same kind of call replaces the approval.

    Grants are stored in the graph's state. Those of the supervisor's conversation come with the request context.
    """

    state_schema = ApprovalState

    def __init__(
        self,
        agent: str,
        judge: Judge,
        *,
        title: str = "",
        effect_of: EffectOf = effect_of,
        untrusted: UntrustedRules | None = None,
    ) -> None:
        super().__init__()
        self._untrusted = untrusted
        self._agent = agent
        self._judge = judge
        self._effect_of = effect_of
        self._title = title or agent

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Result:
        tool, args = request.tool, request.tool_call["args"]
        if tool is None:
            return await handler(request)
        match self._verdict(request, tool, args):
            case CallRefused(reason):
                return _refused(request, reason)
            case ApprovalRequired(effect, why) if not self._is_granted(request, tool, args, effect):
                if not can_be_shown(args):
                    return _refused(request, _TOO_LONG)
                answer, decision_id = self._ask(tool, args, effect, why)
                return await self._apply_answer(request, handler, tool, answer, decision_id)
            case _:
                return await handler(request)

    def _verdict(self, request: ToolCallRequest, tool: BaseTool, args: Mapping[str, Any]) -> Verdict:
        """The decision about a call: that of the policy's rule for the caller, else that of the approval levels. A call
        that these allow may need approval because of untrusted text."""
        verdict = self._judge(tool, args)
        policy: PrincipalPolicy | None = getattr(request.runtime.context, "policy", None)
        effect, decision = self._effect_of(tool, args), None
        if policy is not None and effect is not None:
            decision = policy.call(self._agent, tool.name, args, effect)
            verdict = restricted(verdict, decision, effect)
        return self._guarded(verdict, request, tool, args, effect, decision)

    def _guarded(
        self,
        verdict: Verdict,
        request: ToolCallRequest,
        tool: BaseTool,
        args: Mapping[str, Any],
        effect: Effect | None,
        decision: Decision | None,
    ) -> Verdict:
        rules = self._untrusted
        if rules is None or not isinstance(verdict, CallAllowed) or not rules.concern(tool, effect):
            return verdict
        if (taint := Taint.of(request.state)) is None:
            return verdict
        needed = rules.effect(tool, args, effect, decision, taint)
        return verdict if needed is None else ApprovalRequired(needed, taint.reason)

    def _is_granted(self, request: ToolCallRequest, tool: BaseTool, args: Mapping[str, Any], effect: Effect) -> bool:
        return any(covers(grant, self._agent, tool.name, args, effect) for grant in _grants(request))

    async def _apply_answer(
        self, request: ToolCallRequest, handler: Handler, tool: BaseTool, answer: Answer | None, decision_id: str
    ) -> Result:
        match answer:
            case Approved(edit):
                try:
                    approved = edited_arguments(request.tool_call["args"], edit or {}, _schema(tool))
                except ShownInPartError:
                    return _rejected(request, _CHANGED_IN_PART)
                # The person may have edited the arguments since the first decision.
                if isinstance(verdict := self._verdict(request, tool, approved), CallRefused):
                    return _refused(request, verdict.reason)
                return await self._call_once(request, handler, tool, approved, decision_id)
            case Rejected(reason) | Dismissed(reason):
                return _rejected(request, reason)
            case _:
                return _rejected(request, _NOT_UNDERSTOOD)

    async def _call_once(
        self, request: ToolCallRequest, handler: Handler, tool: BaseTool, approved: dict[str, Any], decision_id: str
    ) -> Result:
        """Use the approval, then make the call. A call that has used it before is not made again."""
        context = request.runtime.context
        if context is None:  # LangGraph Studio, where no server records decisions
            return await _call_with(request, handler, approved)
        ledger: ApprovalLedger | None = getattr(context, "approval_ledger", None)
        if ledger is None:
            return _refused(request, _NO_RECORD)
        used = await ledger.use(
            decision_id,
            call_digest(self._agent, tool.name, request.tool_call["args"]),
            call_digest(self._agent, tool.name, approved),
            current_task_id(get_config()),
        )
        if used.refusal is not None:
            return _refused(request, used.refusal)
        # The result may be recorded; the tool itself must not run a second time.
        return await _call_with(
            request if used.is_first else request.override(tool=_interrupted(tool)), handler, approved
        )

    def _ask(self, tool: BaseTool, args: Mapping[str, Any], effect: Effect, why: str) -> tuple[Answer | None, str]:
        # LangGraph runs the node from its start again when the graph resumes, so this must have no side effects.
        leading = leading_arguments(args, _schema(tool))
        form = approval_form(self._agent, self._title, tool.name, args, leading, effect, why)
        value = interrupt(question_data(form))
        if not isinstance(value, Mapping):
            return None, ""
        data, decision_id = take_decision_id(value)
        return read_answer(data), decision_id


def _interrupted(tool: BaseTool) -> BaseTool:
    """In place of a tool whose call has begun before: it fails with an unknown outcome."""

    async def fail(**_args: Any) -> None:
        raise ReadableError(OUTCOME_UNKNOWN)

    return CoroutineTool(
        name=tool.name,
        description=tool.description,
        args_schema={"type": "object", "properties": {}},
        metadata=tool.metadata,
        coroutine=fail,
    )


async def _call_with(request: ToolCallRequest, handler: Handler, args: dict[str, Any]) -> Result:
    """The result of the call with these arguments. Edited arguments are recorded in the result's metadata."""
    if same_value(args, request.tool_call["args"]):
        return await handler(request)
    result = await handler(request.override(tool_call={**request.tool_call, "args": args}))
    return _with_edit(result, noted_arguments(args))


def _grants(request: ToolCallRequest) -> Iterable[Grant]:
    yield from request.state.get(GRANTS) or ()
    yield from getattr(request.runtime.context, GRANTS, ())


def _refused(request: ToolCallRequest, reason: str) -> ToolMessage:
    return _not_called(request, f"{request.tool_call['name']} was not called: {reason}.", reason)


def _rejected(request: ToolCallRequest, reason: str) -> ToolMessage:
    why = f": {reason.strip()}" if reason.strip() else ""
    return _not_called(request, f"A person rejected this call{why or '.'}", f"rejected by a person{why}")


def _not_called(request: ToolCallRequest, content: str, reason: str) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(
        content, name=call["name"], tool_call_id=call["id"] or "", status="error", artifact={"reason": reason}
    )


def _with_edit(result: Result, args: Mapping[str, Any]) -> Result:
    match result:
        case Command(update={"messages": [*messages], **others}):
            return replace(result, update={**others, "messages": [_with_edit(message, args) for message in messages]})
        case ToolMessage():
            return with_edited_arguments(result, args)
        case _:
            return result


def _schema(tool: BaseTool) -> Mapping[str, Any]:
    schema = tool.args_schema
    return schema if isinstance(schema, dict) else tool.get_input_jsonschema()
