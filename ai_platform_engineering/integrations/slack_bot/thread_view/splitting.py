"""Where a text that is too long for one message is cut, and what each message shows of it.

Where a message ends depends on nothing that follows the first character for which it has no room. So a cut that is
made while the text is still being written stays right.
"""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.integrations.slack_bot.markdown import fences, graphemes
from ai_platform_engineering.integrations.slack_bot.markdown.gaps import Gap, Kind, gaps

MESSAGE_LIMIT: Final = 11_000
SMALLEST_LIMIT: Final = 2 * (fences.MAX_REOPENING_LENGTH + fences.MAX_CLOSING_LENGTH)
_MAX_CHARACTER_LENGTH: Final = 64


def cut(text: str, start: int, limit: int = MESSAGE_LIMIT, *, delivered: int = 0) -> int | None:
    """Where the message that begins at `start` must end; None while all of `text[start:]` fits. What is before
    `delivered` stays in this message: people see it there."""
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"{limit} characters are too few for a message with code in it: {SMALLEST_LIMIT} are enough")
    stop = _first_too_many(text, start, limit)
    if stop is None:
        return None
    least = max(delivered, start + 1)
    half = start + limit // 2

    def goodness(gap: Gap) -> tuple[bool, bool, Kind, int]:
        return gap.kind > Kind.BELOW_HEADING, gap.at >= half, gap.kind, gap.at

    best = max((gap for gap in gaps(text, start, stop) if gap.at >= least), key=goodness, default=None)
    return best.at if best else _anywhere(text, least, stop - 1)


def shown(text: str, start: int, end: int, *, closed: bool) -> str:
    """What the message with `text[start:end]` shows. Code that is open at `start` is opened again; in a message that
    is `closed`, nothing is left open."""
    message = _reopening(text, start) + text[start:end]
    return _closed(message) if closed else message


def _first_too_many(text: str, start: int, limit: int) -> int | None:
    """The first end with which the message would be too long."""
    if len(text) - start + fences.MAX_REOPENING_LENGTH + fences.MAX_CLOSING_LENGTH <= limit:
        return None
    reopening = _reopening(text, start)
    without_closing = start + limit - len(reopening)
    for end in range(without_closing - fences.MAX_CLOSING_LENGTH + 1, min(without_closing + 1, len(text)) + 1):
        if len(_closed(reopening + text[start:end])) > limit:
            return end
    return None


def _anywhere(text: str, least: int, most: int) -> int:
    """Where no character is parted, and no mark of code."""
    ends = range(most, max(min(least, most), most - _MAX_CHARACTER_LENGTH) - 1, -1)
    whole = (end for end in ends if text[end] not in "`~" and graphemes.may_part(text, end))
    return next(whole, most)


def _reopening(text: str, start: int) -> str:
    fence = fences.open_at_end(text[:start])
    return fence.reopening if fence else ""


def _closed(message: str) -> str:
    fence = fences.open_at_end(message)
    if fence is None:
        return message
    return message + ("" if message.endswith("\n") else "\n") + fence.closing
