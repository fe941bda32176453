"""The finish reason of a model's turn, normal or cut off, in one vocabulary for all providers.

Pure functions over the `AIMessage` that a provider's chat class returns. An unknown finish reason counts as a normal
end, so that a new reason of a provider does not stop tools from running.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage

from ai_platform_engineering.final_results import CutReason, cut_reason_of

CUT_OFF: Final = "cut_off"
"""Key in `response_metadata`: the cut reason of a message that was checked before."""
MALFORMED_CALL: Final[Mapping[str, str]] = {"finish_reason": "malformed_function_call"}
"""`response_metadata` of a message whose call could not be parsed."""

_MALFORMED: Final = "malformed_call"
_NORMAL: Final = "normal"

# OpenAI Chat and Responses, Anthropic, Bedrock Converse, Gemini, Ollama and Groq, in lower case.
_REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("stop", "tool_calls", "function_call", "end_turn", "stop_sequence", "tool_use", "pause_turn"),
            *("completed", "finish_reason_unspecified", "load", "unload"),
        ),
        _NORMAL,
    ),
    **dict.fromkeys(
        (
            *("length", "max_tokens", "max_output_tokens", "max_messages", "continuation"),
            "model_context_window_exceeded",
        ),
        "output_length",
    ),
    **dict.fromkeys(
        (
            *("content_filter", "content_filtered", "guardrail_intervened", "safety", "recitation", "blocklist"),
            *("prohibited_content", "spii", "language", "image_safety", "image_prohibited_content"),
            "image_recitation",
        ),
        "content_filter",
    ),
    "refusal": "refusal",
    # "error", "abort" and "insufficient_system_resource" come from OpenAI-compatible servers.
    **dict.fromkeys(
        (
            *("incomplete", "cancelled", "other", "in_progress", "queued"),
            *("error", "abort", "insufficient_system_resource"),
        ),
        "stream_broken",
    ),
    **dict.fromkeys(
        (
            *("malformed_function_call", "unexpected_tool_call", "malformed_tool_use", "malformed_model_output"),
            *("too_many_tool_calls", "missing_thought_signature"),
        ),
        _MALFORMED,
    ),
}
# The longest first, as some reasons end with another one.
_BY_LENGTH: Final = sorted(_REASONS, key=len, reverse=True)

_KEYS: Final = ("finish_reason", "stop_reason", "stopReason", "done_reason")

# Providers that send a finish reason in every complete stream. A message without one is incomplete.
_ALWAYS_GIVEN: Final = frozenset({"openai", "anthropic", "bedrock_converse", "google_genai"})


def cut_reason(message: AIMessage) -> CutReason | None:
    """The reason why the turn was cut off; None if it ended normally or sent no known reason."""
    recorded = message.response_metadata.get(CUT_OFF)
    ending = recorded or ("refusal" if refusal_text(message) else _ending(message))
    return cut_reason_of(ending)


def has_malformed_call(message: AIMessage) -> bool:
    """The provider dropped a tool call because it could not be parsed."""
    return _ending(message) == _MALFORMED


def refusal_text(message: AIMessage) -> str:
    """The text of a refusal, which OpenAI and Anthropic send outside of the content."""
    details = message.response_metadata.get("stop_details")
    explanation = details.get("explanation") if isinstance(details, Mapping) else None
    if refusal := message.additional_kwargs.get("refusal") or explanation:
        return str(refusal)
    blocks = message.content if isinstance(message.content, list) else ()
    return "".join(
        str(block.get("refusal") or "")
        for block in blocks
        if isinstance(block, Mapping) and block.get("type") == "refusal"
    )


def _ending(message: AIMessage) -> str:
    metadata = message.response_metadata
    if _block_reason(metadata):
        return "content_filter"
    stated = next((value for key in _KEYS if isinstance(value := metadata.get(key), str) and value), None)
    if stated is None and (status := metadata.get("status")):
        details = metadata.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return _REASONS.get(str(reason).lower()) or _REASONS.get(str(status).lower(), _NORMAL)
    if stated is None:
        return "stream_broken" if _is_incomplete(message) else _NORMAL
    # LangChain concatenates the strings of chunks, so a reason that was sent twice is "STOPSTOP". The last one counts.
    word = next((word for word in _BY_LENGTH if stated.lower().endswith(word)), "")
    return _REASONS.get(word, _NORMAL)


def _is_incomplete(message: AIMessage) -> bool:
    provider = message.response_metadata.get("model_provider")
    # OpenAI sends the usage chunk after the finish reason, so a stream with usage is complete.
    has_usage = provider == "openai" and message.usage_metadata is not None
    return provider in _ALWAYS_GIVEN and not has_usage


def _block_reason(metadata: Mapping[str, Any]) -> bool:
    feedback = metadata.get("prompt_feedback")
    return isinstance(feedback, Mapping) and bool(feedback.get("block_reason"))
