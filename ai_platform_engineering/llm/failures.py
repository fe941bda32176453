"""Failed model calls: their kinds, and the error message of each kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ai_platform_engineering.utils.errors import ReadableError

Kind = Literal[
    "key",
    "permission",
    "model",
    "quota",
    "rate_limit",
    "context",
    "message_size",
    "policy",
    "request",
    "server",
    "overloaded",
    "timeout",
    "unreachable",
    "interrupted",
    "stalled",
    "unreadable",
]

_MAX_MODEL_LENGTH: Final = 60

_SENTENCES: Final[Mapping[Kind, str]] = {
    "key": "{provider} rejects the credentials: check {key_setting}.",
    "permission": "{provider} does not let these credentials use {model}: check {key_setting} and {model_setting}.",
    "model": "{provider} has no model {model} for these credentials: set {model_setting} to another one{or_address}.",
    "quota": "The quota at {provider} is used up: check its billing, or set LLM_PROVIDER to another provider.",
    "rate_limit": "{provider} limits the requests to {model}: try again {again}.",
    "context": "The conversation is too long for {model}: start a new conversation, or set LLM_CONTEXT_TOKENS to the "
    "context window of the model.",
    "message_size": "One message alone is larger than the context window of {model} (LLM_CONTEXT_TOKENS): send it in "
    "parts, or set {model_setting} to a model with a larger window.",
    "policy": "The content policy of {provider} rejected the request: rephrase it.",
    "request": "{provider} rejected the request to {model}{status}: check {model_setting}. The log has its reason.",
    "server": "{provider} reported an error of its own{status}: try again {again}.",
    "overloaded": "{provider} is overloaded{status}: try again {again}.",
    "timeout": "{provider} did not answer {limit}: ask again, ask for less at once, or raise LLM_TIMEOUT.",
    "unreachable": "{provider} cannot be reached: check {address}, then ask again.",
    "interrupted": "The connection to {provider} was lost in the middle of an answer: ask again.",
    "stalled": "{provider} sent nothing {limit}: ask again, or raise LLM_IDLE_TIMEOUT.",
    "unreadable": "{provider} sent something that is not an answer of its API: check {address}.",
}
_CAUSES: Final[Mapping[Kind, str]] = {
    "rate_limit": "{provider} limits the requests to {model}",
    "overloaded": "{provider} is overloaded",
    "server": "{provider} reported an error of its own",
    "unreachable": "{provider} cannot be reached",
}
RETRYABLE: Final[frozenset[Kind]] = frozenset(_CAUSES)
"""The kinds of failure after which the same call may succeed."""


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """The names of provider and model in error messages, and the settings that selected them."""

    provider: str
    model: str = ""
    key_setting: str = "its API key"
    model_setting: str = "MODEL_NAME"
    address_setting: str | None = None


@dataclass(frozen=True, slots=True)
class ModelFailure:
    kind: Kind
    status: int | None = None
    retry_after: float | None = None
    limit: float | None = None
    """The timeout in seconds that ended the call."""
    detail: str = ""
    """The provider's message for the log, as one line without credentials."""


class ModelFailedError(ReadableError):
    """A model call failed at the provider. The text is the error message for people."""

    code = "model"

    def __init__(self, failure: ModelFailure, origin: ModelOrigin) -> None:
        super().__init__(sentence(failure, origin))
        self.failure = failure
        self.origin = origin


def sentence(failure: ModelFailure, origin: ModelOrigin) -> str:
    """The error message: what failed, and what a person can do about it."""
    text = _SENTENCES[failure.kind].format(
        provider=origin.provider,
        model=_shown(origin.model),
        key_setting=origin.key_setting,
        model_setting=origin.model_setting,
        address=origin.address_setting or "the network",
        or_address=f", or check {origin.address_setting}" if origin.address_setting else "",
        status=f" ({failure.status})" if failure.status else "",
        limit=f"within {duration(failure.limit)}" if failure.limit else "in time",
        again="in a moment" if failure.retry_after is None else f"in {duration(failure.retry_after)}",
    )
    return _capitalised(text)


def retry_message(failure: ModelFailure, origin: ModelOrigin, seconds: float) -> str:
    """The message that people see while a call waits for its next attempt."""
    cause = _CAUSES[failure.kind].format(provider=origin.provider, model=_shown(origin.model))
    return _capitalised(f"{cause}; trying again in {duration(seconds)}.")


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shown(model: str) -> str:
    return (model if len(model) <= _MAX_MODEL_LENGTH else f"{model[:_MAX_MODEL_LENGTH]}…") or "the model"


def duration(seconds: float) -> str:
    """A duration such as 45 s, 5 min or 2 h. It is rounded up, so that a retry after it is never too early."""
    if seconds <= 90:
        return f"{max(1, math.ceil(seconds))} s"
    if seconds <= 5400:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 3600)} h"
