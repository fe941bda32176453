"""The sentences with which failures are reported to people and models.

The text of an exception is reported only if its class declares it readable. Other texts stay in the process's log.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import Final

import httpx
from langchain_core.tools import ToolException
from langgraph.errors import GraphRecursionError

from ai_platform_engineering.llm.failures import ModelOrigin, sentence
from ai_platform_engineering.llm.provider_errors import model_failure, provider_of
from ai_platform_engineering.mcp.errors import ToolFailed
from ai_platform_engineering.utils.errors import FailureCode, ReadableError
from ai_platform_engineering.utils.redact import redact

REASON_LENGTH = 200
_CHECK: Final = "Check before you try again."

# Only characters that cannot be part of a name: underscores, brackets and the # of an issue number stay.
_MARKUP = re.compile(r"[`*]+|^[#>]+\s+")


@dataclass(frozen=True, slots=True)
class RunFailure:
    code: FailureCode
    sentence: str


def is_recursion_limit(error: BaseException) -> bool:
    """True for LangGraph's error, and for errors of other classes with its text."""
    return isinstance(error, GraphRecursionError) or "recursion limit" in str(error).lower()


def failure_of(error: BaseException) -> RunFailure:
    """The code and the sentence for an exception."""
    if failure := _readable(error) or _of_model(error) or _of_connection(error):
        return failure
    if is_recursion_limit(error):
        return RunFailure(
            "recursion_limit",
            "The work was stopped at the step limit. Ask for a smaller part, or raise LANGGRAPH_RECURSION_LIMIT.",
        )
    return RunFailure("internal", f"Something went wrong inside ({type(error).__name__}). The log has the details.")


def _readable(error: BaseException) -> RunFailure | None:
    match error:
        case ReadableError():
            return RunFailure(error.code, str(error))
        case ToolException():
            return RunFailure("agent", str(error) or "The tool reported an error without saying which.")
        case _:
            return None


def _of_model(error: BaseException) -> RunFailure | None:
    """For a provider's exception that was raised outside `chat_model`, so the settings are unknown."""
    if (provider := provider_of(error)) and (failure := model_failure(error)):
        return RunFailure("model", sentence(failure, ModelOrigin(provider)))
    return None


def _of_connection(error: BaseException) -> RunFailure | None:
    match error:
        case TimeoutError() | asyncio.TimeoutError() | httpx.TimeoutException():
            return RunFailure("timeout", f"It did not answer in time, so its outcome is unknown. {_CHECK}")
        case httpx.ConnectError() | ConnectionRefusedError():
            return RunFailure("unavailable", "It cannot be reached. Try again in a moment.")
        case httpx.TransportError() | ConnectionError():
            return RunFailure("unavailable", f"The connection was lost, so the outcome is unknown. {_CHECK}")
        case _:
            return None


def log_failure(logger: logging.Logger, where: str, failure: RunFailure) -> None:
    """Log the failure that is being handled. Internal ones are logged as errors, because their sentence refers to the
    log."""
    internal = failure.code == "internal"
    logger.log(logging.ERROR if internal else logging.WARNING, "%s: %s", where, failure.sentence, exc_info=internal)


def reason_of(error: BaseException) -> str:
    """Why a call failed, for people. The sentence of `failure_of` is for the model and may be a backend's whole
    response."""
    return error.reason if isinstance(error, ToolFailed) else failure_of(error).sentence


def short_reason(text: str) -> str:
    """One plain line for a notification: no markup, no secrets, no second line."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = redact(_MARKUP.sub("", line)).strip()
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 1].rstrip() + "…"
