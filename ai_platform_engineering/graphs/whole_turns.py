"""Model turns that are not streamed, where no one reads their text as it is written: a quarter of the CPU."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.llm.provider_class import unstreamed
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext


class WholeTurns(AgentMiddleware[Any, Any, Any]):
    """Decides for each run. `inner` is on for an agent inside of the supervisor's process."""

    def __init__(self, model: BaseChatModel, *, inner: bool) -> None:
        super().__init__()
        self._model = model
        self._whole = unstreamed(model)
        self._inner = inner

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        if self._whole is None or request.model is not self._model or self._is_read(request.runtime.context):
            return await handler(request)
        return await handler(request.override(model=self._whole))

    def _is_read(self, context: RequestContext | None) -> bool:
        if context is None:
            return True
        return context.stream_sub_agent_text if self._inner else context.stream_text
