"""Splitting a text that is too long for one message, and rendering the part of each message.

The end of a message depends only on the text up to the first character that does not fit. So a split that was made
while the text was still growing stays valid.
"""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.integrations.slack_bot.markdown import fences, graphemes
from ai_platform_engineering.integrations.slack_bot.markdown.split_points import SplitKind, SplitPoint, split_points

MESSAGE_LIMIT: Final = 11_000
MIN_LIMIT: Final = 2 * (fences.MAX_REOPENING_LENGTH + fences.MAX_CLOSING_LENGTH)
_MAX_GRAPHEME_LENGTH: Final = 64


def cut(text: str, start: int, limit: int = MESSAGE_LIMIT, *, delivered: int = 0) -> int | None:
    """Where the message that begins at `start` must end; None while all of `text[start:]` fits. The text before
    `delivered` is already shown in this message, so the end is never before it."""
    if limit < MIN_LIMIT:
        raise ValueError(f"{limit} characters are too few for a message with code: the minimum is {MIN_LIMIT}")
    stop = _first_overflow(text, start, limit)
    if stop is None:
        return None
    least = max(delivered, start + 1)
    half = start + limit // 2

    def preference(point: SplitPoint) -> tuple[bool, bool, SplitKind, int]:
        return point.kind > SplitKind.BELOW_HEADING, point.at >= half, point.kind, point.at

    best = max((point for point in split_points(text, start, stop) if point.at >= least), key=preference, default=None)
    return best.at if best else _anywhere(text, least, stop - 1)


def shown(text: str, start: int, end: int, *, closed: bool) -> str:
    """The Markdown of the message with `text[start:end]`. A code block that is open at `start` is reopened; in a
    `closed` message, an open code block is closed."""
    message = _reopening(text, start) + text[start:end]
    return _closed(message) if closed else message


def _first_overflow(text: str, start: int, limit: int) -> int | None:
    """The first end at which the message would be too long."""
    if len(text) - start + fences.MAX_REOPENING_LENGTH + fences.MAX_CLOSING_LENGTH <= limit:
        return None
    reopening = _reopening(text, start)
    without_closing = start + limit - len(reopening)
    for end in range(without_closing - fences.MAX_CLOSING_LENGTH + 1, min(without_closing + 1, len(text)) + 1):
        if len(_closed(reopening + text[start:end])) > limit:
            return end
    return None


def _anywhere(text: str, least: int, most: int) -> int:
    """The last position that splits neither a grapheme nor a code fence."""
    ends = range(most, max(min(least, most), most - _MAX_GRAPHEME_LENGTH) - 1, -1)
    whole = (end for end in ends if text[end] not in "`~" and graphemes.may_split(text, end))
    return next(whole, most)


def _reopening(text: str, start: int) -> str:
    fence = fences.open_at_end(text[:start])
    return fence.reopening if fence else ""


def _closed(message: str) -> str:
    fence = fences.open_at_end(message)
    if fence is None:
        return message
    return message + ("" if message.endswith("\n") else "\n") + fence.closing
