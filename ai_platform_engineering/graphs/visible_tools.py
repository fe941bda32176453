"""Middleware that offers the model only the tools which the policy does not hide from the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.tools import BaseTool

from ai_platform_engineering.compat.agent_middleware import overridden
from ai_platform_engineering.graphs.approval_policy import effect_of
from ai_platform_engineering.policy.decisions import PrincipalPolicy


class VisibleTools(AgentMiddleware[Any, Any, Any]):
    """Tools of the agent's MCP servers can be hidden; built-in tools have no effect outside the conversation."""

    def __init__(self, agent: str) -> None:
        super().__init__()
        self._agent = agent

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        policy: PrincipalPolicy | None = getattr(request.runtime.context, "policy", None)
        if policy is None:
            return await handler(request)
        visible = [tool for tool in request.tools if not self._is_hidden(policy, tool)]
        return await handler(request if len(visible) == len(request.tools) else overridden(request, tools=visible))

    def _is_hidden(self, policy: PrincipalPolicy, tool: BaseTool | dict[str, Any]) -> bool:
        if not isinstance(tool, BaseTool) or (effect := effect_of(tool, {})) is None:
            return False
        return policy.hides_tool(self._agent, tool.name, effect)
