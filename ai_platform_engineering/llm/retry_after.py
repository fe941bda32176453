"""Seconds until the next attempt, from a provider's HTTP headers and error details."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
# OpenAI, Azure and Groq send x-ratelimit-reset-tokens, Anthropic anthropic-ratelimit-tokens-reset.
_RESET: Final = re.compile(r"x-ratelimit-reset(?:-\w+)?|anthropic-ratelimit-[\w-]+-reset")


def retry_after(
    headers: Mapping[str, str], details: Iterable[Any] = (), *, limited: bool = True, now: float | None = None
) -> float | None:
    """The most precise value wins: `retry-after-ms`, `retry-after`, error details, then rate limit resets.

    Every response has rate limit resets. They count only if a rate limit caused the failure (`limited`).
    """
    at = time.time() if now is None else now
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    if (milliseconds := _number(lowered.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    if (seconds := _seconds_until(lowered.get("retry-after", ""), at)) is not None:
        return seconds
    for detail in details:
        if (
            isinstance(detail, Mapping)
            and (seconds := _seconds_until(str(detail.get("retryDelay", "")), at)) is not None
        ):
            return seconds
    return _reset(lowered, at) if limited else None


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """The latest reset of the exhausted limits. Limits with remaining capacity are ignored."""
    waits = [
        seconds
        for name, value in headers.items()
        if _RESET.fullmatch(name)
        and _number(headers.get(name.replace("reset", "remaining"), "0")) == 0
        and (seconds := _seconds_until(value, now)) is not None
    ]
    return max(waits, default=None)


def _seconds_until(text: str, now: float) -> float | None:
    """Seconds from now; `text` is a number, a duration such as 6m0s, or a date in HTTP or ISO 8601 format."""
    if (seconds := _number(text)) is not None:
        # Some providers send a Unix timestamp.
        return max(0.0, seconds - now) if seconds > 1e9 else seconds
    if text and not _DURATION.sub("", text):
        return sum(float(amount) * _UNITS[unit] for amount, unit in _DURATION.findall(text))
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return max(0.0, read(text).timestamp() - now)
        except ValueError:
            continue
    return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}(?:\.\d+)?", text) else None
