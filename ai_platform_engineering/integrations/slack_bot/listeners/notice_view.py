"""A modal that only says something: what is shown instead of a form that cannot be answered."""

from __future__ import annotations

from typing import Any, Final

_LIMIT: Final = 3_000


def notice_view(sentence: str, title: str = "Not done") -> dict[str, Any]:
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": title},
        "close": {"type": "plain_text", "text": "Close"},
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": sentence[:_LIMIT]}}],
    }
