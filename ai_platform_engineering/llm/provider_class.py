"""The chat classes of the provider packages with limits and retries, and without the API key in their `repr`."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr, ValidationError

from ai_platform_engineering.llm.failures import ModelOrigin
from ai_platform_engineering.llm.guarded_call import CallLimits, UnreadableAnswerError, guarded, shortened

if TYPE_CHECKING:
    _Base = BaseChatModel
else:
    # As a real base, BaseChatModel's fields would override the fields that a provider's class redeclares.
    _Base = object


class GuardedModel(_Base):
    """Mixin that comes before a provider's class in the method resolution order."""

    _origin: ModelOrigin
    _limits: CallLimits

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        call = functools.partial(super()._astream, messages, stop, run_manager, **kwargs)
        async with aclosing(guarded(call, self._origin, self._limits)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if not self.disable_streaming:
            # Only a stream can be stopped at the maximum length.
            chunks = [chunk async for chunk in self._astream(messages, stop, run_manager, **kwargs)]
            return generate_from_stream(iter(chunks))
        generate = functools.partial(super()._agenerate, messages, stop, run_manager, **kwargs)

        async def call() -> AsyncIterator[ChatResult]:
            try:
                yield await generate()
            except (ValueError, KeyError, TypeError) as error:
                # The graph handles a validation error of LangChain itself: it asks the model again.
                if isinstance(error, ValidationError) or not self._limits.whole_answers:
                    raise
                raise UnreadableAnswerError from error

        (result,) = [result async for result in guarded(call, self._origin, self._limits)]
        return shortened(cast(ChatResult, result), self._limits.max_output_chars)

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Only the model's name: LangChain sends the `repr` to tracers, and some classes store the key as a string."""
        yield "model", self._origin.model


def guarded_model(
    chat_class: type[BaseChatModel], options: dict[str, Any], origin: ModelOrigin, limits: CallLimits
) -> BaseChatModel:
    model = _guarded_class(chat_class)(**options)
    model._origin, model._limits = origin, limits
    return model


def unstreamed(model: BaseChatModel) -> BaseChatModel | None:
    """A copy of the model that does not stream; None for a model that always streams."""
    if not isinstance(model, GuardedModel) or not model._limits.whole_answers:
        return None
    copy = model.model_copy(update={"disable_streaming": True, "streaming": False})
    # Without streaming, no data arrives before the end of the answer.
    copy._limits = replace(model._limits, idle_timeout=model._limits.timeout)
    return copy


@functools.cache
def _guarded_class(chat_class: type[BaseChatModel]) -> type[GuardedModel]:
    """A subclass of `GuardedModel` and the provider's class, with the name of the latter."""
    names = {
        "__module__": chat_class.__module__,
        "__qualname__": chat_class.__qualname__,
        "_origin": PrivateAttr(),
        "_limits": PrivateAttr(),
    }
    return cast(type[GuardedModel], type(chat_class.__name__, (GuardedModel, chat_class), names))
