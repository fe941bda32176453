"""What people decided about a call: that it may not be made, that it is made with other arguments, that a form is off.

Rejected calls and canceled forms are read from the results of tools, which say so in fixed words.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ai_platform_engineering.offline_model.conversation import Use

_REJECTED = re.compile(r"^\s*A person rejected this call(?::\s*(?P<reason>\S.*?)|\.?)\s*$", re.S)
_CANCELED = re.compile(
    r"^\s*The person canceled the form(?::\s*(?P<reason>\S.*?)|\.?)(?:\s+The workflow\b[^\n]*)?\s*$", re.S
)


def rejection(use: Use) -> str | None:
    """Why a person rejected the call: "" without a reason, None for a call that nobody rejected."""
    return _reason(_REJECTED, use.result) if use.failed else None


def cancellation(use: Use) -> str | None:
    """Why a person canceled the form: "" without a reason, None for a form that was not canceled."""
    return _reason(_CANCELED, use.result)


def as_made(use: Use) -> Use:
    """The call as it was really made: with a person's arguments where they changed them."""
    return use if use.edited is None else replace(use, arguments={**use.arguments, **use.edited}, edited=None)


def _reason(pattern: re.Pattern[str], result: str | None) -> str | None:
    match = pattern.match(result or "")
    return " ".join((match["reason"] or "").split()) if match else None
