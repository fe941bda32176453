"""Characters that attack the reader of a text: they control a terminal, reorder or hide text, or forge lines.

`clean` removes them from text of several lines, `escaped` shows them in one line, `quoted` shows a value in a message.
"""

from __future__ import annotations

import re
from typing import Final

_TAGS: Final = "\U000e0000-\U000e007f"
_BIDI: Final = "\u202a-\u202e\u2066-\u2069"
# Variation selectors 1 to 16 are left out because emoji use them. The joiners have a separate pattern.
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
_CONTROL: Final = "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"

TAG_CHARACTERS: Final = re.compile(f"[{_TAGS}]+")
"""Tag characters are an invisible copy of ASCII, so they can carry whole sentences."""
BIDI_OVERRIDES: Final = re.compile(f"[{_BIDI}]")
"""Embeddings, overrides and isolates display text in another order than the stored one."""
INVISIBLE_CHARACTERS: Final = re.compile(
    f"[{_INVISIBLE}]|"
    # A joiner after a visible non-ASCII character is legitimate: emoji and some scripts need it.
    f"(?<![^\x00-\x7f\u200c\u200d{_INVISIBLE}])[\u200c\u200d]"
)
CONTROL_CHARACTERS: Final = re.compile(f"[{_CONTROL}]")

_HIDDEN: Final = "\u061c\u200b\u200e\u200f\ufeff\ufff9-\ufffb"
# Tabs and line breaks stay, and so do the joiners, which emoji and some scripts need.
_UNSAFE: Final = f"{_CONTROL}\x0c\r{_BIDI}{_TAGS}{_HIDDEN}"
_REMOVED: Final = re.compile(f"[{_UNSAFE}]")
_ESCAPED: Final = re.compile(f"[{_UNSAFE}\t\n\u2028\u2029\ud800-\udfff]")
_SHORT_ESCAPES: Final = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_UNPRINTABLE: Final = re.compile(f"[{_CONTROL}\t\n\x0c\r{_TAGS}{_BIDI}{_INVISIBLE}\u200c\u200d\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` without characters that control a terminal, reorder text or hide it. Tabs and line breaks stay."""
    return _SURROGATES.sub("\ufffd", _REMOVED.sub("", text))


def escaped(text: str) -> str:
    """`text` on one line: the characters that `clean` removes, tabs and line breaks are shown as JSON escapes."""
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return _SHORT_ESCAPES.get(found[0]) or "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def unseen_character(text: str) -> str | None:
    """The first invisible character of `text`, formatted like `U+202E`. Tabs and line breaks are allowed."""
    for pattern in (CONTROL_CHARACTERS, BIDI_OVERRIDES, TAG_CHARACTERS, INVISIBLE_CHARACTERS, _SURROGATES):
        if found := pattern.search(text):
            return f"U+{ord(found[0][0]):04X}"
    return None


def quoted(value: str, limit: int = 60) -> str:
    """`value` for a message: quoted, shortened, with credentials masked and invisible characters escaped."""
    # Imported on demand: it loads the settings, and with them pydantic.
    from ai_platform_engineering.utils.redact import redact  # noqa: PLC0415

    shown = _UNPRINTABLE.sub(lambda found: f"<U+{ord(found[0]):04X}>", redact(value[: 4 * limit]))
    if len(shown) > limit or len(value) > 4 * limit:
        shown = f"{shown[:limit]}..."
    return f'"{shown}"'
