"""The guard around tool calls: every failure becomes an error result for the model, and the run continues. Results are
without the secrets of this process."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from ai_platform_engineering.compat.agent_middleware import AGENT_ARGUMENT, DELEGATION_TOOL
from ai_platform_engineering.runs.failures import failure_of, log_failure, reason_of, short_reason
from ai_platform_engineering.storage.event_log.event_log import SupersededError
from ai_platform_engineering.utils.redact import KnownSecrets

logger = logging.getLogger(__name__)

Result = ToolMessage | Command[Any]


class ToolGuard(AgentMiddleware[Any, Any, Any]):
    """Turns exceptions, unknown tools and unknown agents into error results, and masks `secrets` in all results.

    The reason for people goes into the message's `artifact`, which is not sent to models.
    """

    def __init__(self, *, agents: Collection[str] = (), secrets: KnownSecrets | None = None) -> None:
        super().__init__()
        self._agents = tuple(sorted(agents))
        self._secrets = secrets or KnownSecrets()

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        result = await self._guarded(request, handler)
        return _masked(result, self._secrets) if self._secrets else result

    async def _guarded(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        call = request.tool_call
        if request.tool is None:
            return error_result(request, f"There is no tool named {call['name']!r}.", "there is no such tool")
        # Without agents there is no delegation tool: a tool of that name is an ordinary tool.
        delegates = bool(self._agents) and call["name"] == DELEGATION_TOOL
        if delegates and (agent := call["args"].get(AGENT_ARGUMENT)) not in self._agents:
            known = ", ".join(self._agents)
            content = f"There is no agent named {agent!r}. Agents: {known}."
            return error_result(request, content, "there is no such agent")
        try:
            result = await handler(request)
        except (GraphBubbleUp, SupersededError):
            raise
        except Exception as error:  # the only handler of a tool's exceptions
            failure = failure_of(error)
            reason = reason_of(error)
            log_failure(logger, call["name"], replace(failure, sentence=short_reason(reason)))
            return error_result(request, failure.sentence, reason)
        if isinstance(result, ToolMessage) and result.status == "error" and result.artifact is None:
            # ToolNode answers arguments that do not fit the schema with a text that repeats them.
            return result.model_copy(update={"artifact": {"reason": "its arguments were not valid"}})
        return result


def _masked(result: Result, secrets: KnownSecrets) -> Result:
    match result:
        case ToolMessage(content=content, artifact=artifact):
            return result.model_copy(update={"content": secrets.masked(content), "artifact": secrets.masked(artifact)})
        case Command(update={"messages": [*messages], **others}):
            masked = [_masked(each, secrets) if isinstance(each, ToolMessage) else each for each in messages]
            return replace(result, update={**others, "messages": masked})
        case _:
            return result


def error_result(request: ToolCallRequest, content: str, reason: str) -> ToolMessage:
    """The result of a failed call. `reason` is for people."""
    call = request.tool_call
    return ToolMessage(
        content, name=call["name"], tool_call_id=call["id"] or "", status="error", artifact={"reason": reason}
    )
