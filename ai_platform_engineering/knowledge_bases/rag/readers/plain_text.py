"""Plain text, and the decoding of bytes that all readers of text use."""

from __future__ import annotations

import codecs
import re
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.readers.reading import (
    ExtractedText,
    RawDocument,
    UnreadableDocumentError,
)
from ai_platform_engineering.knowledge_bases.rag.readers.titles import MAX_TITLE_LENGTH, shortened, title_from_name

_BYTE_ORDERS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Codecs of Python that no document uses.
_UNUSED_CODECS: Final = frozenset({"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "utf-7"})
# Browsers read Latin-1 as this superset as well: it has quotes and dashes where Latin-1 has control characters.
_WESTERN: Final = "cp1252"
_HEADING: Final = re.compile(r"^( {0,3})(?=#{1,6}(?:\s|$))", re.MULTILINE)


def read(raw: RawDocument) -> ExtractedText:
    text = decode(raw)
    first = next((line.strip() for line in text.split("\n") if any(map(str.isalnum, line))), "")
    title = first if 0 < len(first) <= MAX_TITLE_LENGTH else title_from_name(raw.name)
    return ExtractedText(shortened(title), without_headings(text))


def without_headings(text: str) -> str:
    """Escape a `#` at the start of a line: in plain text it is a comment or a prompt, not a Markdown heading."""
    return _HEADING.sub(r"\1\\", text)


def decode(raw: RawDocument, declared: str | None = None) -> str:
    r"""The text with `\n` line ends. The encoding is that of the byte order mark, then of the Content-Type header, then
    `declared` in the document itself, then a guess."""
    text = _decoded(raw.content, (raw.charset, declared))
    if "\x00" in text:
        raise UnreadableDocumentError(f"{raw.name} is not text: it has null bytes in it.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(content: bytes, declared: tuple[str | None, ...]) -> str:
    for byte_order_mark, encoding in _BYTE_ORDERS:
        if content.startswith(byte_order_mark):
            return content[len(byte_order_mark) :].decode(encoding, "replace")
    known = (_known_encoding(charset) for charset in declared if charset)
    for encoding in (*filter(None, known), "utf-8", _WESTERN):
        try:
            return content.decode(encoding)
        except (UnicodeError, LookupError):
            continue
    return content.decode(_WESTERN, "replace")


def _known_encoding(charset: str) -> str | None:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    if name in _UNUSED_CODECS:
        return None
    return _WESTERN if name in {"iso8859-1", "ascii"} else name
