"""The chat classes of the providers' packages, as the product uses them: guarded, and without their key in sight."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr, ValidationError

from ai_platform_engineering.llm.failures import ModelOrigin
from ai_platform_engineering.llm.guarded_call import CallLimits, UnreadableError, guarded, shortened

if TYPE_CHECKING:
    _Base = BaseChatModel
else:
    # The fields of BaseChatModel would hide those that a provider's class declares anew.
    _Base = object


class GuardedModel(_Base):
    """Mixed into a provider's class, in front of it."""

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
            # Only what streams can be stopped when it becomes too much.
            return await agenerate_from_stream(self._astream(messages, stop, run_manager, **kwargs))
        generate = functools.partial(super()._agenerate, messages, stop, run_manager, **kwargs)

        async def call() -> AsyncIterator[ChatResult]:
            try:
                yield await generate()
            except (ValueError, KeyError, TypeError) as error:
                # A turn that breaks LangChain's own rules is read by the graph, which asks again.
                if isinstance(error, ValidationError) or not self._limits.whole_answers:
                    raise
                raise UnreadableError from error

        (result,) = [result async for result in guarded(call, self._origin, self._limits)]
        return shortened(cast(ChatResult, result), self._limits.max_output_chars)

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """No field of the model: LangChain sends this to tracers, and some classes keep the key as a plain string."""
        yield "model", self._origin.model


def guarded_model(
    chat_class: type[BaseChatModel], options: dict[str, Any], origin: ModelOrigin, limits: CallLimits
) -> BaseChatModel:
    model = _guarded_class(chat_class)(**options)
    model._origin, model._limits = origin, limits
    return model


def unstreamed(model: BaseChatModel) -> BaseChatModel | None:
    """A copy of the model that asks for whole answers; None for one that always streams."""
    if not isinstance(model, GuardedModel) or not model._limits.whole_answers:
        return None
    copy = model.model_copy(update={"disable_streaming": True, "streaming": False})
    # Nothing comes before the end, however long the answer is.
    copy._limits = replace(model._limits, idle_timeout=model._limits.timeout)
    return copy


@functools.cache
def _guarded_class(chat_class: type[BaseChatModel]) -> type[GuardedModel]:
    """The subclass of a provider's class with `GuardedModel` in front, under the same name."""
    names = {
        "__module__": chat_class.__module__,
        "__qualname__": chat_class.__qualname__,
        "_origin": PrivateAttr(),
        "_limits": PrivateAttr(),
    }
    return cast(type[GuardedModel], type(chat_class.__name__, (GuardedModel, chat_class), names))
