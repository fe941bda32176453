"""Disarms mentions in the text of models: they look the same but notify no one."""

from __future__ import annotations

import re
from typing import Final

_WORD_JOINER: Final = "\u2060"
_BRACKETS: Final = re.compile(r"<(?=!(?i:channel|here|everyone|group|subteam)|@[UW])", re.ASCII)
# In an email address (ops@here.com) it is not a mention.
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


def disarm_mentions(text: str) -> str:
    """Break every mention in prose with an invisible character."""
    return _NAMES.sub("@" + _WORD_JOINER, disarm_code_mentions(text))


def disarm_code_mentions(code: str) -> str:
    """Break mentions in angle brackets, which Slack also finds in code. Names stay: `@here/sdk` may be copied."""
    return _BRACKETS.sub("<" + _WORD_JOINER, code)


def without_partial_mention(text: str) -> str:
    """`text` without a trailing part that may become a mention."""
    for length in range(min(_MAX_LENGTH - 1, len(text)), 0, -1):
        end = text[-length:].lower()
        if any(beginning.startswith(end) and beginning != end for beginning in _BEGINNINGS):
            return text[:-length]
    return text
