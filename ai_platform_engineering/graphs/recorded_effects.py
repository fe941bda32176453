"""Middleware that records tool calls which change something, so that a resumed run repeats none of them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.types import Command

from ai_platform_engineering.compat.langgraph import current_task_id
from ai_platform_engineering.graphs.history import OUTCOME_UNKNOWN

Result = ToolMessage | Command[Any]
Changes = Callable[[BaseTool, Mapping[str, Any]], bool]
"""Whether a call of the tool with these arguments changes something."""

_INTERRUPTED: Final = "it was interrupted, and its outcome is unknown"
_FIELDS: Final = ("content", "status", "artifact")


class RecordedEffects(AgentMiddleware[Any, Any, Any]):
    """The call begins in the run's ledger before the tool runs, and gets its result there before the model sees it.

    The result of a finished call comes from the ledger. A call that was in flight when its process died is not
    repeated: the model learns that its outcome is unknown. Calls that only read are not recorded.
    """

    def __init__(self, changes: Changes) -> None:
        super().__init__()
        self._changes = changes

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        ledger = getattr(request.runtime.context, "effects", None)
        if ledger is None or request.tool is None or not self._changes(request.tool, request.tool_call["args"]):
            return await handler(request)
        call_id = current_task_id(get_config())
        if (recorded := await ledger.begin(call_id)) is not None:
            return _recorded_result(request, recorded.result)
        result = await handler(request)
        await ledger.finish(call_id, _stored(result))
        return result


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
