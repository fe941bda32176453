"""The chat model of a graph: which model an agent gets, and whether its turns are streamed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.compat.agent_middleware import overridden
from ai_platform_engineering.llm import chat_model
from ai_platform_engineering.llm.provider_class import unstreamed
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

ModelFactory = Callable[[Settings, AgentManifest | None], BaseChatModel]
"""Makes the model of the agent with this manifest, or the supervisor's model for None."""


def model_for(settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    if manifest is None:
        return chat_model(settings)
    return chat_model(settings, manifest.name, manifest.model)


class UnstreamedTurns(AgentMiddleware[Any, Any, Any]):
    """Calls the model without streaming in runs whose text is not streamed to the caller. This saves a quarter of the
    CPU time.

    `inner` is true for an agent in the supervisor's process, whose text the caller requests separately.
    """

    def __init__(self, model: BaseChatModel, *, inner: bool) -> None:
        super().__init__()
        self._model = model
        self._unstreamed = unstreamed(model)
        self._inner = inner

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        if self._unstreamed is None or request.model is not self._model or self._is_streamed(request.runtime.context):
            return await handler(request)
        return await handler(overridden(request, model=self._unstreamed))

    def _is_streamed(self, context: RequestContext | None) -> bool:
        if context is None:
            return True
        return context.stream_sub_agent_text if self._inner else context.stream_text
