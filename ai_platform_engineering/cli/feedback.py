"""`platform-engineer feedback`: lists users' feedback, also while servers store more."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime

from ai_platform_engineering.cli.exit_codes import fail
from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.multi_agents.platform_engineer.feedback.store import newest_feedback
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.text.plain_text import aligned, one_line
from ai_platform_engineering.utils.errors import ReadableError


def list_feedback(options: argparse.Namespace, settings: Settings) -> int:
    try:
        found = newest_feedback(settings, options.limit)
    except (ReadableError, SettingsError) as error:
        return fail(error)
    if options.json:
        lines = [json.dumps(feedback.facts()) for feedback in found]
    else:
        lines = [*aligned([*map(_row, found)])] if found else ["There is no feedback."]
    print_lines(*lines)
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
