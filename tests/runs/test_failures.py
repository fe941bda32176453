from __future__ import annotations

import logging

import httpx
import openai
import pytest
from google.api_core.exceptions import ResourceExhausted
from google.auth.exceptions import DefaultCredentialsError
from langchain_core.tools import ToolException
from langgraph.errors import GraphRecursionError

from ai_platform_engineering.mcp.errors import ToolFailed
from ai_platform_engineering.runs.failures import (
    REASON_LENGTH,
    failure_of,
    is_recursion_limit,
    log_failure,
    reason_of,
    short_reason,
)
from ai_platform_engineering.utils.errors import ReadableError


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


def test_a_long_reason_is_cut_at_its_length() -> None:
    assert short_reason("x" * REASON_LENGTH) == "x" * REASON_LENGTH
    assert short_reason("x" * (REASON_LENGTH + 1)) == "x" * (REASON_LENGTH - 1) + "…"
    before_a_space = "x" * (REASON_LENGTH - 2)
    assert short_reason(f"{before_a_space} more words") == f"{before_a_space}…"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ReadableError("Ask again."), "unavailable", "Ask again."),
        (ToolException("There is no application 'x'."), "agent", "There is no application 'x'."),
        (ToolException(""), "agent", "The tool reported an error without saying which."),
        (TimeoutError("socket 10.0.0.7"), "timeout", "did not answer in time"),
        (httpx.ReadTimeout("https://internal"), "timeout", "did not answer in time"),
        (httpx.ConnectError("https://internal"), "unavailable", "It cannot be reached. Try again in a moment."),
        (httpx.ReadError("https://internal"), "unavailable", "outcome is unknown"),
        (GraphRecursionError("after 500"), "recursion_limit", "The work was stopped at the step limit."),
        (GraphRecursionError("after 500"), "recursion_limit", "raise LANGGRAPH_RECURSION_LIMIT."),
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
    assert failure.sentence[0].isupper()
    assert failure.sentence.endswith(".")
    assert not any(inside in failure.sentence for inside in ("internal/", "https://", "10.0.0.7", "sk-secret"))


def test_the_step_limit_is_known_by_its_class_and_else_by_its_words() -> None:
    assert is_recursion_limit(GraphRecursionError("anything"))
    assert is_recursion_limit(RuntimeError("Recursion limit of 25 reached"))
    assert not is_recursion_limit(RuntimeError("out of memory"))


def test_the_reason_of_a_tool_is_for_people_and_its_whole_answer_for_the_model() -> None:
    error = ToolFailed("401: the token in the header has expired", "the credentials were rejected")
    assert reason_of(error) == "the credentials were rejected"
    assert failure_of(error).sentence == "401: the token in the header has expired"
    assert reason_of(ToolException("There is no application 'x'.")) == "There is no application 'x'."


def test_a_failure_is_logged_with_its_traceback_only_where_it_refers_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for error in (KeyError("x"), TimeoutError()):
        try:
            raise error
        except Exception as raised:
            log_failure(logging.getLogger("a.tool"), "sync", failure_of(raised))
    internal, known = caplog.records
    assert (internal.levelname, known.levelname) == ("ERROR", "WARNING")
    assert internal.getMessage() == f"sync: {failure_of(KeyError('x')).sentence}"
    assert internal.exc_info is not None
    assert internal.exc_info[0] is KeyError
    assert not known.exc_info
