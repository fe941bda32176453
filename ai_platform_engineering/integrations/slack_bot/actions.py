"""The buttons below a message: their action ids, and what their values say.

A value comes back from Slack's clients as it was sent, so it names things and grants nothing.
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
class Pressed:
    """A button that somebody pressed: what it belongs to, and for a rating which of the two it was."""

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


def read_value(value: object) -> Pressed | None:
    """What `value_of` wrote; None for anything else."""
    try:
        content = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    match content:
        case {"rate": str(task), "trace": str(trace), "message": str(message), "good": bool(good)}:
            return Pressed(Rating(task, trace, message), good)
        case {"retry": str(task)}:
            return Pressed(Retry(task))
        case {"stop": str(task)}:
            return Pressed(Stop(task))
        case _:
            return None
