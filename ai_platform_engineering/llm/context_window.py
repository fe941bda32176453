"""The context window of a chat model, and an estimate of the tokens in a prompt.

Tokens are estimated from characters, because the tokenizer of a model would have to be downloaded. The token counts
that providers report correct the estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import TypeAdapter, ValidationError

from ai_platform_engineering.settings import Settings, SettingsError, describe_allowed, wrong_value

DEFAULT_TOKENS: Final = 128_000
"""The window of a model that LangChain has no profile of."""

# Prose has about four characters per token; logs and JSON have fewer.
_CHARS_PER_TOKEN: Final = 3.5
_CHARS_PER_MESSAGE: Final = 20
# Models get the results of tools between delimiters, which the messages of the conversation do not contain.
_CHARS_OF_DELIMITERS: Final = 91
_CHARS_PER_CALL: Final = 40
_CHARS_PER_MEDIA_BLOCK: Final = 4_000
_MIN_CORRECTION: Final = 0.5
_MAX_CORRECTION: Final = 4.0
_ESTIMATE: Final = "estimated_prompt_tokens"
_REFUSED: Final = "refused_prompt_tokens"


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """`compact_at` is the share of the window at which older turns are summarised."""

    tokens: int
    compact_at: float


def context_window(settings: Settings, agent: str | None, model: BaseChatModel) -> ContextWindow:
    """The window of the supervisor's model, or of the named agent's: from the settings, else from LangChain."""
    return ContextWindow(
        _value(settings, agent, "llm_context_tokens") or _profile_tokens(model) or DEFAULT_TOKENS,
        _value(settings, agent, "llm_compact_at"),
    )


def _value(settings: Settings, agent: str | None, name: str) -> Any:
    """The agent's own variable takes precedence over the common one."""
    variable = f"{agent}_{name}".upper()
    text = settings.environ.get(variable) if agent is not None else None
    if not text:
        return getattr(settings, name)
    info = Settings.model_fields[name]
    try:
        return TypeAdapter(info.rebuild_annotation()).validate_python(text)
    except ValidationError:
        raise SettingsError(wrong_value(variable, text, describe_allowed(info))) from None


def _profile_tokens(model: BaseChatModel) -> int | None:
    tokens = (model.profile or {}).get("max_input_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def estimated_tokens(chars: float) -> int:
    return round(chars / _CHARS_PER_TOKEN)


def message_chars(message: BaseMessage) -> int:
    """The characters of a message, with its tool calls."""
    content = message.content
    chars = len(content) if isinstance(content, str) else sum(map(_block_chars, content))
    # Every turn counts all messages, and `isinstance` takes longer, as their classes are abstract.
    if message.type == "tool":
        chars += _CHARS_OF_DELIMITERS
    elif message.type != "human" and isinstance(message, AIMessage):
        for call in message.tool_calls:
            chars += _CHARS_PER_CALL + len(call["name"]) + len(repr(call["args"]))
    return chars + _CHARS_PER_MESSAGE


def _block_chars(block: str | Mapping[str, Any]) -> int:
    if isinstance(block, str):
        return len(block)
    match block.get("type"):
        case "text":
            return len(str(block.get("text") or ""))
        case "tool_use" | "tool_call" | "function_call":
            return 0  # counted as a tool call
        case "image" | "image_url" | "audio" | "file":
            return _CHARS_PER_MEDIA_BLOCK
        case _:
            return len(repr(block))


def correction(messages: Iterable[BaseMessage]) -> float:
    """The provider's token count of the latest prompt, divided by the estimate of that prompt. `messages` are newest
    first."""
    for message in messages:
        if isinstance(message, AIMessage) and message.usage_metadata:
            counted, estimate = message.usage_metadata["input_tokens"], message.response_metadata.get(_ESTIMATE)
            if counted > 0 and isinstance(estimate, int) and estimate > 0:
                return min(_MAX_CORRECTION, max(_MIN_CORRECTION, counted / estimate))
    return 1.0


def with_estimate(message: AIMessage, tokens: int) -> AIMessage:
    """The message with the estimate of its prompt, if the provider counted the tokens of that prompt."""
    if not message.usage_metadata:
        return message
    return message.model_copy(update={"response_metadata": {**message.response_metadata, _ESTIMATE: tokens}})


def refused_tokens(messages: Iterable[BaseMessage]) -> int | None:
    """The estimated size of a prompt that the provider refused as too long, if that happened in this conversation.
    `messages` are newest first."""
    sizes = (message.response_metadata.get(_REFUSED) for message in messages if isinstance(message, AIMessage))
    return next((size for size in sizes if isinstance(size, int)), None)


def with_refused(message: AIMessage, tokens: int) -> AIMessage:
    """The message with the size of a refused prompt, for the next calls of the conversation."""
    return message.model_copy(update={"response_metadata": {**message.response_metadata, _REFUSED: tokens}})
