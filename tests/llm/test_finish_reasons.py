"""Which messages of which provider are whole, and why the others are not."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from ai_platform_engineering.llm.finish_reasons import cut_reason, has_malformed_call

OPENAI = {"model_provider": "openai"}


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({}, None),
        ({"finish_reason": "a new word"}, None),
        ({**OPENAI, "finish_reason": "tool_calls"}, None),
        ({**OPENAI, "finish_reason": "length"}, "output_length"),
        ({**OPENAI, "finish_reason": "content_filter"}, "content_filter"),
        ({**OPENAI, "finish_reason": "error"}, "stream_broken"),
        (OPENAI, "stream_broken"),
        ({**OPENAI, "status": "completed"}, None),
        ({**OPENAI, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "output_length"),
        ({**OPENAI, "status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({**OPENAI, "status": "incomplete", "incomplete_details": None}, "stream_broken"),
        ({"model_provider": "anthropic", "stop_reason": "tool_use"}, None),
        ({"model_provider": "anthropic", "stop_reason": "model_context_window_exceeded"}, "output_length"),
        ({"model_provider": "anthropic", "stop_reason": "refusal"}, "refusal"),
        ({"model_provider": "anthropic", "stop_reason": None}, "stream_broken"),
        ({"stopReason": "guardrail_intervened"}, "content_filter"),
        ({"finish_reason": "STOPSTOP", "model_provider": "google_genai"}, None),
        ({"finish_reason": "STOPMAX_TOKENS", "model_provider": "google_genai"}, "output_length"),
        ({"finish_reason": "RECITATION"}, "content_filter"),
        ({"prompt_feedback": {"block_reason": "SAFETY"}}, "content_filter"),
        ({"done_reason": "length", "model_provider": "ollama"}, "output_length"),
    ],
)
def test_the_reason_of_a_provider(metadata: dict[str, Any], reason: str | None) -> None:
    assert cut_reason(AIMessage("x", response_metadata=metadata)) == reason


def test_a_usage_chunk_shows_that_openais_stream_is_whole() -> None:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    assert cut_reason(AIMessage("x", response_metadata=OPENAI, usage_metadata=usage)) is None


def test_a_dropped_call_is_no_cut_answer() -> None:
    message = AIMessage("", response_metadata={"stopReason": "malformed_tool_use"})
    assert (cut_reason(message), has_malformed_call(message)) == (None, True)
