"""The context window of a model, from the settings or LangChain, and the estimate of a prompt's tokens."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI

from ai_platform_engineering.llm.context_window import (
    DEFAULT_TOKENS,
    ContextWindow,
    context_window,
    correction,
    message_chars,
    with_estimate,
)
from ai_platform_engineering.settings import SettingsError
from tests.runs.graphs import settings_of


@pytest.mark.parametrize(
    ("environ", "agent", "model", "expected"),
    [
        ({}, None, "gpt-4", ContextWindow(8192, 0.7)),
        ({}, None, "unknown", ContextWindow(DEFAULT_TOKENS, 0.7)),
        ({"LLM_CONTEXT_TOKENS": "4000", "LLM_COMPACT_AT": "0.5"}, "jira", "gpt-4", ContextWindow(4000, 0.5)),
        ({"JIRA_LLM_CONTEXT_TOKENS": "5000"}, "jira", "gpt-4", ContextWindow(5000, 0.7)),
        ({"JIRA_LLM_COMPACT_AT": "0.4", "LLM_COMPACT_AT": "0.5"}, "jira", "gpt-4", ContextWindow(8192, 0.4)),
        ({"JIRA_LLM_CONTEXT_TOKENS": "5000"}, None, "gpt-4", ContextWindow(8192, 0.7)),
    ],
)
def test_the_window_of_a_model(environ: dict[str, str], agent: str | None, model: str, expected: ContextWindow) -> None:
    assert context_window(settings_of(**environ), agent, ChatOpenAI(model=model, api_key="k")) == expected


def test_a_wrong_value_of_an_agent_names_the_variable_and_the_valid_ones() -> None:
    settings = settings_of(JIRA_LLM_CONTEXT_TOKENS="many")
    with pytest.raises(SettingsError, match=r"^JIRA_LLM_CONTEXT_TOKENS=many .*at least 1000"):
        context_window(settings, "jira", ChatOpenAI(model="gpt-4", api_key="k"))


def turn(**more: Any) -> AIMessage:
    return AIMessage("a", **more)


def test_the_estimate_is_corrected_by_the_latest_count_of_the_provider() -> None:
    usage = {"input_tokens": 300, "output_tokens": 1, "total_tokens": 301}
    counted = with_estimate(turn(usage_metadata=usage), 200)
    assert correction([HumanMessage("q"), turn(), counted]) == 1.5
    assert correction([HumanMessage("q"), turn(usage_metadata=usage)]) == 1.0, "no estimate to compare with"
    assert correction([with_estimate(turn(usage_metadata=usage), 1)]) == 4.0, "not plausible, so limited"
    assert with_estimate(uncounted := turn(), 200) is uncounted


def test_calls_count_as_often_as_they_are_sent() -> None:
    calls = [{"id": "c", "name": "search", "args": {"q": "x" * 500}}]
    block = {"type": "tool_use", "id": "c", "name": "search", "input": {"q": "x" * 500}}
    plain = message_chars(AIMessage("text", tool_calls=calls))
    assert 500 < plain < 600
    assert message_chars(AIMessage([{"type": "text", "text": "text"}, block], tool_calls=calls)) == plain
