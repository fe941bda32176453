"""The error that may be read by people: everything else is only for the log."""

from __future__ import annotations

from typing import Literal

FailureCode = Literal[
    "internal", "model", "recursion_limit", "timeout", "unavailable", "empty_answer", "agent", "stopped"
]


class ReadableError(Exception):
    """An error whose text is a sentence for people and models: it names the thing and the way out, and no secret."""

    code: FailureCode = "unavailable"
