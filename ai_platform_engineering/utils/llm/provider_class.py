"""The chat classes of the providers' packages, as the product uses them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, cast

from langchain_core.language_models import BaseChatModel


class ProviderModel(BaseChatModel):
    """Mixed into a provider's class, in front of it.

    The representation has no field of the model: LangChain sends it to tracers, and some classes keep the key as a
    plain string.
    """

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        yield "model", getattr(self, "model_name", None) or getattr(self, "model", None)


@functools.cache
def provider_class(chat_class: type[BaseChatModel]) -> type[BaseChatModel]:
    """The subclass of a provider's class with `ProviderModel` in front, under the same name."""
    names = {"__module__": chat_class.__module__, "__qualname__": chat_class.__qualname__}
    return cast(type[BaseChatModel], type(chat_class.__name__, (ProviderModel, chat_class), names))
