"""`platform-engineer feedback`: lists users' feedback. The file can be read while a server writes to it."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime

from ai_platform_engineering.cli.exit_codes import fail
from ai_platform_engineering.multi_agents.platform_engineer.feedback.file import feedback_path, read_newest
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.text.plain_text import aligned, one_line
from ai_platform_engineering.utils.errors import ReadableError


def list_feedback(options: argparse.Namespace, settings: Settings) -> int:
    try:
        found = read_newest(feedback_path(settings), options.limit)
    except ReadableError as error:
        return fail(error)
    if options.json:
        lines = [json.dumps(feedback.facts()) for feedback in found]
    else:
        lines = [*aligned([*map(_row, found)])] if found else ["There is no feedback."]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _row(feedback: Feedback) -> tuple[str, ...]:
    at = datetime.fromtimestamp(feedback.at_ns / 1e9, UTC)
    who = feedback.user_name or feedback.user or "-"
    return (
        f"{at:%Y-%m-%d %H:%M:%S}",
        feedback.rating,
        feedback.surface,
        one_line(who),
        feedback.task_id or feedback.trace_id,
        one_line(feedback.reason),
    )
