"""The buttons below a message: their action ids and their values.

A value is client input when it comes back, so it identifies things and grants no permission.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Footer, Rating, Retry, Stop

RATE: Final = "platform_engineer:rate"
RETRY: Final = "platform_engineer:retry"
STOP: Final = "platform_engineer:stop"


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """A pressed button: its footer, and for a rating whether it was the good one."""

    footer: Footer
    good: bool | None = None


def value_of(footer: Footer, *, good: bool | None = None) -> str:
    """The value of a button; for a rating, of the good or the bad one."""
    match footer:
        case Rating(task_id=task, trace_id=trace, message_id=message):
            content: dict[str, Any] = {"rate": task, "trace": trace, "message": message, "good": bool(good)}
        case Retry(task_id=task):
            content = {"retry": task}
        case Stop(task_id=task):
            content = {"stop": task}
    return json.dumps(content, separators=(",", ":"))


def read_value(value: object) -> ButtonPress | None:
    """The inverse of `value_of`; None for any other value."""
    try:
        content = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    match content:
        case {"rate": str(task), "trace": str(trace), "message": str(message), "good": bool(good)}:
            return ButtonPress(Rating(task, trace, message), good)
        case {"retry": str(task)}:
            return ButtonPress(Retry(task))
        case {"stop": str(task)}:
            return ButtonPress(Stop(task))
        case _:
            return None
