"""Middleware that records tool calls which change something: in the audit record, and in the ledger of the run, so that
a resumed run repeats none of them."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.types import Command

from ai_platform_engineering.audit.log import AuditUnavailableError
from ai_platform_engineering.audit.record import AuditFact, Outcome, arguments_digest
from ai_platform_engineering.compat.langgraph import current_task_id
from ai_platform_engineering.graphs.history import OUTCOME_UNKNOWN
from ai_platform_engineering.graphs.tool_guard import error_result
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

Result = ToolMessage | Command[Any]
Changes = Callable[[BaseTool, Mapping[str, Any]], bool]
"""Whether a call of the tool with these arguments changes something."""

_INTERRUPTED: Final = "it was interrupted, and its outcome is unknown"
_FIELDS: Final = ("content", "status", "artifact")


class RecordedEffects(AgentMiddleware[Any, Any, Any]):
    """The call begins in the run's ledger before the tool runs, and gets its result there before the model sees it.

    The result of a finished call comes from the ledger. A call that was in flight when its process died is not
    repeated: the model learns that its outcome is unknown. Calls that only read are not recorded.

    The audit record has the start of a call before the tool runs. If it must have it and cannot be written, the call
    is not made.
    """

    def __init__(self, agent: str, changes: Changes) -> None:
        super().__init__()
        self._agent = agent
        self._changes = changes

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        context = request.runtime.context
        if not isinstance(context, RequestContext) or request.tool is None:
            return await handler(request)
        if not self._changes(request.tool, request.tool_call["args"]):
            return await handler(request)
        call_id, ledger = current_task_id(get_config()), context.effects
        started = self._started(request, context, call_id)
        if ledger is not None and (recorded := await ledger.begin(call_id)) is not None:
            found = _recorded_result(request, recorded.result)
            context.audit.record(replace(_finished(started, found), reason="found by a resumed run"))
            return found
        result = await self._call(request, handler, context, started)
        if ledger is not None:
            await ledger.finish(call_id, _stored(result))
        return result

    async def _call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[Result]],
        context: RequestContext,
        started: AuditFact,
    ) -> Result:
        try:
            await context.audit.record_durably(started)
            result = await handler(request)
        except AuditUnavailableError as error:
            reason = f"a call that may change something has to be recorded first. {error}"
            return error_result(request, f"{request.tool_call['name']} was not called: {reason}", reason)
        except BaseException:
            context.audit.record(_ended(started, "unknown"))
            raise
        context.audit.record(_finished(started, result))
        return result

    def _started(self, request: ToolCallRequest, context: RequestContext, call_id: str) -> AuditFact:
        return AuditFact(
            "tool_call_started",
            context.caller,
            task=context.task_id,
            conversation=context.context_id,
            agent=self._agent,
            tool=request.tool_call["name"],
            call=call_id,
            arguments=arguments_digest(request.tool_call["args"]),
        )


def _finished(started: AuditFact, result: Result) -> AuditFact:
    match result:
        case ToolMessage(status="error", content=content) if content == OUTCOME_UNKNOWN:
            return _ended(started, "unknown")
        case ToolMessage(status="error"):
            return _ended(started, "failed")
        case _:
            return _ended(started, "ok")


def _ended(started: AuditFact, outcome: Outcome) -> AuditFact:
    return replace(started, kind="tool_call_finished", outcome=outcome, time_ns=time.time_ns())


def _stored(result: Result) -> str:
    """The result as JSON. A tool that changes something answers with a message; other results are not repeatable."""
    if not isinstance(result, ToolMessage):
        return json.dumps({})
    return json.dumps({name: getattr(result, name) for name in _FIELDS}, default=str)


def _recorded_result(request: ToolCallRequest, stored: str | None) -> ToolMessage:
    call = request.tool_call
    facts = json.loads(stored) if stored else {}
    if not facts:
        facts = {"content": OUTCOME_UNKNOWN, "status": "error", "artifact": {"reason": _INTERRUPTED}}
    return ToolMessage(**facts, name=call["name"], tool_call_id=call["id"] or "")
