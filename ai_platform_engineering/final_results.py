"""Special values of `FinalResult`: the limits that cut an answer short, and the text of a deliberately empty answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

CutReason = Literal["output_length", "content_filter", "refusal", "stream_broken"]
"""The values of `FinalResult.limit` for an answer that the provider cut short."""

CUT_REASONS: Final[tuple[CutReason, ...]] = get_args(CutReason)
DECLINED: Final[tuple[CutReason, ...]] = ("content_filter", "refusal")
"""The provider or the model objects to the content, so a retry with the same question cannot help."""

CUT_SENTENCES: Final[Mapping[str, str]] = {
    "output_length": "The model reached its output limit before the answer was complete.",
    "content_filter": "The model provider's content filter stopped the answer.",
    "refusal": "The model declined to answer.",
    "stream_broken": "The connection to the model ended before the answer was complete.",
}

NOTHING_TO_SAY: Final = "[nothing to say]"
"""The text of an answer when the supervisor has nothing to add to a conversation. Surfaces show nothing for it."""

# Models often quote or emphasize the marker, or end it with a period.
_DECORATION: Final = " \t\r\n`*_\"'“”."


def cut_reason_of(limit: str | None) -> CutReason | None:
    """`limit` if it cut the answer short; None for other limits."""
    return next((reason for reason in CUT_REASONS if reason == limit), None)


def is_silence(text: str) -> bool:
    return text.strip(_DECORATION).casefold() == NOTHING_TO_SAY
