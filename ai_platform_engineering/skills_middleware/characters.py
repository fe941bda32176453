"""Characters that people cannot see but models read, and the display of a foreign value in a message."""

from __future__ import annotations

import re
from typing import Final

from ai_platform_engineering.utils.redact import redact

_TAGS: Final = "\U000e0000-\U000e007f"
_BIDI: Final = "\u202a-\u202e\u2066-\u2069"
# Variation selectors 1 to 16 are absent: emoji have them. The joiners have a pattern of their own.
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
_CONTROL: Final = "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"

TAG_CHARACTERS: Final = re.compile(f"[{_TAGS}]+")
"""Tag characters repeat ASCII invisibly, so they can carry whole sentences."""
BIDI_OVERRIDES: Final = re.compile(f"[{_BIDI}]")
"""Embeddings, overrides and isolates show text in another order than the one in which it is read."""
INVISIBLE_CHARACTERS: Final = re.compile(
    f"[{_INVISIBLE}]|"
    # A joiner after a visible character outside ASCII belongs to an emoji or to a script that needs it.
    f"(?<![^\x00-\x7f\u200c\u200d{_INVISIBLE}])[\u200c\u200d]"
)
CONTROL_CHARACTERS: Final = re.compile(f"[{_CONTROL}]")

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_UNPRINTABLE: Final = re.compile(f"[{_CONTROL}\t\n\x0c\r{_TAGS}{_BIDI}{_INVISIBLE}\u200c\u200d\ud800-\udfff]")


def unseen_character(text: str) -> str | None:
    """The first character of `text` that a reader would not see, as `U+202E`. Tabs and line breaks are fine."""
    for pattern in (CONTROL_CHARACTERS, BIDI_OVERRIDES, TAG_CHARACTERS, INVISIBLE_CHARACTERS, _SURROGATES):
        if found := pattern.search(text):
            return f"U+{ord(found[0][0]):04X}"
    return None


def quoted(value: str, limit: int = 60) -> str:
    """`value` for a message: in quotes, shortened, without credentials, with unseen characters as escapes."""
    shown = _UNPRINTABLE.sub(lambda found: f"<U+{ord(found[0]):04X}>", redact(value[: 4 * limit]))
    if len(shown) > limit or len(value) > 4 * limit:
        shown = f"{shown[:limit]}..."
    return f'"{shown}"'
