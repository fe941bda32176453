from __future__ import annotations

import httpx
import openai
import pytest
from google.api_core.exceptions import ResourceExhausted
from google.auth.exceptions import DefaultCredentialsError
from langchain_core.tools import ToolException
from langgraph.errors import GraphRecursionError

from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.runs.failures import REASON_LENGTH, failure_of, is_recursion_limit, short_reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("set NETUTILS_ALLOW_PRIVATE=true to allow it", "set NETUTILS_ALLOW_PRIVATE=true to allow it"),
        ("acme/gitops#415 [open] has no check a>b", "acme/gitops#415 [open] has no check a>b"),
        ("`sync_application` **failed**", "sync_application failed"),
        ("# Not found\ndetails", "Not found"),
        ("\n\n  first line  \nTraceback (most recent call last)", "first line"),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer ***"),
        ("", ""),
    ],
)
def test_a_reason_is_one_plain_line_with_its_names_intact(text: str, reason: str) -> None:
    assert short_reason(text) == reason


def test_a_long_reason_is_cut() -> None:
    assert len(short_reason("word " * 200)) <= REASON_LENGTH


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ReadableError("Ask again."), "unavailable", "Ask again."),
        (ToolException("There is no application 'x'."), "agent", "There is no application 'x'."),
        (TimeoutError("socket 10.0.0.7"), "timeout", "did not answer in time"),
        (httpx.ReadTimeout("https://internal"), "timeout", "did not answer in time"),
        (httpx.ConnectError("https://internal"), "unavailable", "cannot be reached"),
        (httpx.ReadError("https://internal"), "unavailable", "outcome is unknown"),
        (GraphRecursionError("after 500"), "recursion_limit", "LANGGRAPH_RECURSION_LIMIT"),
        (KeyError("sk-secret-value"), "internal", "KeyError"),
        (ResourceExhausted("sk-secret-value"), "model", "Google limits the requests"),
        (DefaultCredentialsError("sk-secret-value"), "model", "Google rejects the credentials"),
        (openai.APIConnectionError(request=httpx.Request("POST", "https://internal")), "model", "OpenAI cannot be"),
    ],
)
def test_only_text_that_was_written_to_be_read_is_shown(error: Exception, code: str, words: str) -> None:
    failure = failure_of(error)
    assert failure.code == code
    assert words in failure.sentence
    assert not any(inside in failure.sentence for inside in ("internal/", "https://", "10.0.0.7", "sk-secret"))


def test_the_step_limit_is_known_by_its_class_and_else_by_its_words() -> None:
    assert is_recursion_limit(GraphRecursionError("anything"))
    assert is_recursion_limit(RuntimeError("Recursion limit of 25 reached"))
    assert not is_recursion_limit(RuntimeError("out of memory"))
