"""What can cut a model's answer off: the values of `FinalResult.limit` that say so, and a sentence for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

CutReason = Literal["output_length", "content_filter", "refusal", "stream_broken"]
CUT_REASONS: Final[tuple[CutReason, ...]] = get_args(CutReason)
DECLINED: Final[tuple[CutReason, ...]] = ("content_filter", "refusal")
"""The provider or the model objects to the content, so the same question again cannot help."""

CUT_SENTENCES: Final[Mapping[str, str]] = {
    "output_length": "The model reached its output limit before the answer was complete.",
    "content_filter": "The model provider's content filter stopped the answer.",
    "refusal": "The model declined to answer.",
    "stream_broken": "The connection to the model ended before the answer was complete.",
}


def cut_reason_of(limit: str | None) -> CutReason | None:
    """The limit, if it is one that cut the answer off."""
    return next((reason for reason in CUT_REASONS if reason == limit), None)
