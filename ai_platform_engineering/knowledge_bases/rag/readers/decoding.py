"""From bytes to text: the encoding by its mark, by what was declared, else by trying."""

from __future__ import annotations

import codecs
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.readers.reading import Raw, UnreadableError

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Encodings of Python's own, which no document is in.
_FOREIGN: Final = frozenset({"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "utf-7"})
# As browsers do it: who says Latin-1 nearly always means this one, which has quotes and dashes where that has nothing.
_WESTERN: Final = "cp1252"


def decode(raw: Raw, declared: str | None = None) -> str:
    """The text with plain line ends. `declared` is what the document says of itself; the header goes before it."""
    text = _decoded(raw.content, (raw.charset, declared))
    if "\x00" in text:
        raise UnreadableError(f"{raw.name} is not text: it has null bytes in it.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(content: bytes, declared: tuple[str | None, ...]) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    known = (_known(charset) for charset in declared if charset)
    for encoding in (*filter(None, known), "utf-8", _WESTERN):
        try:
            return content.decode(encoding)
        except (UnicodeError, LookupError):
            continue
    return content.decode(_WESTERN, "replace")


def _known(charset: str) -> str | None:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    if name in _FOREIGN:
        return None
    return _WESTERN if name in {"iso8859-1", "ascii"} else name
