"""Plain text: as it is, with what would be a heading in Markdown, but is a comment or a prompt, made harmless."""

from __future__ import annotations

import re
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.readers.decoding import decode
from ai_platform_engineering.knowledge_bases.rag.readers.reading import Raw, Reading
from ai_platform_engineering.knowledge_bases.rag.readers.titles import MAX_TITLE_LENGTH, shortened, title_from_name

_HEADING: Final = re.compile(r"^( {0,3})(?=#{1,6}(?:\s|$))", re.MULTILINE)


def read(raw: Raw) -> Reading:
    text = decode(raw)
    first = next((line.strip() for line in text.split("\n") if any(map(str.isalnum, line))), "")
    title = first if 0 < len(first) <= MAX_TITLE_LENGTH else title_from_name(raw.name)
    return Reading(shortened(title), without_headings(text))


def without_headings(text: str) -> str:
    return _HEADING.sub(r"\1\\", text)
