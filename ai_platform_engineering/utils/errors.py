"""Errors whose text may be shown to people. The texts of all others go to the log only."""

from __future__ import annotations

from typing import Literal

FailureCode = Literal[
    "internal", "model", "recursion_limit", "timeout", "unavailable", "empty_answer", "agent", "stopped", "budget"
]


class ReadableError(Exception):
    """An error whose text is a sentence for people and models: what is wrong and what to do, without secrets."""

    code: FailureCode = "unavailable"
