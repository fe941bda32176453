"""Grapheme clusters: several code points that are displayed as one character."""

from __future__ import annotations

import unicodedata
from typing import Final

_ZERO_WIDTH_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = range(0x1F1E6, 0x1F200)
_TAGS: Final = range(0xE0020, 0xE0080)
_HANGUL_VOWELS_AND_FINALS: Final = range(0x1160, 0x1200)
_FIRST_HALVES: Final = range(0xD800, 0xDC00)
_SECOND_HALVES: Final = range(0xDC00, 0xE000)


def may_split(text: str, at: int) -> bool:
    """Whether a split at `at` keeps grapheme clusters whole. Only the text up to and with `at` matters."""
    if not 0 < at < len(text):
        return True
    before, after = text[at - 1], text[at]
    if before in "\r\n" or after in "\r\n":
        return before + after != "\r\n"
    if before == _ZERO_WIDTH_JOINER or _extends(after):
        return False
    if ord(after) in _FLAG_LETTERS:
        return _flag_letters_before(text, at) % 2 == 0
    return not (ord(before) in _FIRST_HALVES and ord(after) in _SECOND_HALVES)


def _extends(character: str) -> bool:
    code = ord(character)
    return (
        character == _ZERO_WIDTH_JOINER
        or code in _SKIN_TONES
        or code in _TAGS
        or code in _HANGUL_VOWELS_AND_FINALS
        or unicodedata.category(character).startswith("M")
    )


def _flag_letters_before(text: str, at: int) -> int:
    begin = at
    while begin > 0 and ord(text[begin - 1]) in _FLAG_LETTERS:
        begin -= 1
    return at - begin
