"""Mentions that would call people. What a model writes calls nobody; it looks the same."""

from __future__ import annotations

import re
from typing import Final

_WORD_JOINER: Final = "\u2060"
_BRACKETS: Final = re.compile(r"<(?=!(?i:channel|here|everyone|group|subteam)|@[UW])", re.ASCII)
# In an address (ops@here.com) it is no mention.
_NAMES: Final = re.compile(r"@(?<!\w@)(?=(?i:channel|here|everyone))", re.ASCII)
_BEGINNINGS: Final = (
    "<!channel",
    "<!here",
    "<!everyone",
    "<!group",
    "<!subteam",
    "<@u",
    "<@w",
    "@channel",
    "@here",
    "@everyone",
)
_MAX_LENGTH: Final = max(map(len, _BEGINNINGS))


def silent(text: str) -> str:
    """Prose in which every mention is broken by a character that is not seen."""
    return _NAMES.sub("@" + _WORD_JOINER, silent_code(text))


def silent_code(code: str) -> str:
    """Slack finds what is in its angle brackets in code, too. Names are left alone: `@here/sdk` is to be copied."""
    return _BRACKETS.sub("<" + _WORD_JOINER, code)


def decided(text: str) -> str:
    """`text` without an end that may become a mention."""
    for length in range(min(_MAX_LENGTH - 1, len(text)), 0, -1):
        end = text[-length:].lower()
        if any(beginning.startswith(end) and beginning != end for beginning in _BEGINNINGS):
            return text[:-length]
    return text
