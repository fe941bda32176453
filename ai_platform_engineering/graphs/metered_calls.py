"""Counts the tokens of every model call, as the provider reports them, and makes no call without a budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from ai_platform_engineering.budgets.usage import MAX_MODEL_NAME, UNREPORTED, Usage
from ai_platform_engineering.llm.provider_class import GuardedModel
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext, UsageMeter


class MeteredCalls(AgentMiddleware[Any, Any, Any]):
    """It must be innermost: middleware outside it may call the model more than once in a turn."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        meter = meter_of(request)
        if meter is None:
            return await handler(request)
        await meter.check()
        try:
            response = await handler(request)
        except BaseException:
            # It may have cost something: the provider did not say.
            meter.add(model_name(request.model), UNREPORTED)
            raise
        for message in response.result:
            count_answer(meter, request.model, message)
        return response


def meter_of(request: ModelRequest[Any]) -> UsageMeter | None:
    context = request.runtime.context if request.runtime is not None else None
    return context.usage if isinstance(context, RequestContext) else None


def count_answer(meter: UsageMeter, model: BaseChatModel, answer: BaseMessage) -> None:
    if isinstance(answer, AIMessage):
        meter.add(model_name(model), reported_usage(answer))


def reported_usage(answer: AIMessage) -> Usage:
    """The tokens that the provider has reported for an answer."""
    reported = answer.usage_metadata
    if not reported or not (reported["input_tokens"] or reported["output_tokens"]):
        return UNREPORTED
    details = reported.get("input_token_details")
    cached = details.get("cache_read") if isinstance(details, Mapping) else None
    return Usage(
        calls=1,
        input_tokens=reported["input_tokens"],
        output_tokens=reported["output_tokens"],
        cached_tokens=min(cached or 0, reported["input_tokens"]),
    )


def model_name(model: BaseChatModel) -> str:
    """The name of the model as it is configured, for the table of prices."""
    return str(model._origin.model if isinstance(model, GuardedModel) else model._llm_type)[:MAX_MODEL_NAME]
