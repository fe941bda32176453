"""Reads Markdown: the text is unchanged, except for the front matter, which is removed."""

from __future__ import annotations

import re
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.readers.plain_text import decode
from ai_platform_engineering.knowledge_bases.rag.readers.reading import ExtractedText, RawDocument
from ai_platform_engineering.knowledge_bases.rag.readers.titles import shortened, title_from_name, without_markup

_FRONT_MATTER: Final = re.compile(r"\A(---|\+\+\+)[^\S\n]*\n(.*?)(?<=\n)(?:\1|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_TITLE_KEY: Final = re.compile(r"^title[^\S\n]*[:=][^\S\n]*(\S.*?)[^\S\n]*$", re.MULTILINE | re.IGNORECASE)
_COMMENTS: Final = re.compile(r"\A(?:\s*<!--(?:(?!-->).)*-->[^\S\n]*(?:\n|\Z))+", re.DOTALL)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX: Final = re.compile(r" {0,3}#{1,6}[^\S\n]+(.*?)(?:[^\S\n]+#+)?[^\S\n]*$")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-{2,})[^\S\n]*$")
_HTML_HEADING: Final = re.compile(r"<h1\b[^>]*>(.*?)</h1>", re.DOTALL | re.IGNORECASE)


def read(raw: RawDocument) -> ExtractedText:
    text = decode(raw)
    declared_title, text = _without_front_matter(text)
    title = declared_title or first_heading(text) or title_from_name(raw.name)
    return ExtractedText(shortened(title), text)


def _without_front_matter(text: str) -> tuple[str | None, str]:
    """The title in the front matter, and the text without it and without comments around it (licences)."""
    text = _COMMENTS.sub("", text).lstrip("\n")
    matter = _FRONT_MATTER.match(text)
    if matter is None or not _is_front_matter(matter[2]):
        return None, text
    key = _TITLE_KEY.search(matter[2])
    title = _unquoted(key[1]) if key else None
    return title or None, _COMMENTS.sub("", text[matter.end() :])


def _unquoted(value: str) -> str:
    match value[:1], value[-1:]:
        case "'", "'":
            return value[1:-1].replace("''", "'")
        case '"', '"':
            return value[1:-1].replace('\\"', '"')
        case _:
            return value


def _is_front_matter(matter: str) -> bool:
    """False for text between two horizontal rules."""
    first = next((line for line in matter.split("\n") if line.strip() and not line.startswith("#")), None)
    return first is None or re.match(r"""["']?[\w.-]+["']?\s*[:=]|\[|\{|- """, first) is not None


def first_heading(text: str) -> str | None:
    """The text of the first heading outside of code."""
    html = _HTML_HEADING.search(text, 0, 10_000)
    if html is not None and (words := without_markup(html[1])):
        text = text[: html.start()]
    else:
        words = ""
    fence: str | None = None
    before = ""
    for line in text.split("\n"):
        fence_line = _FENCE.match(line)
        if fence is not None:
            if fence_line and fence_line[1].startswith(fence) and not line[fence_line.end() :].strip():
                fence = None
            continue
        if fence_line:
            fence, before = fence_line[1], ""
            continue
        if heading := _heading(before, line):
            return heading
        before = line
    return words or None


def _heading(before: str, line: str) -> str | None:
    if heading := _ATX.match(line):
        return without_markup(heading[1])
    if before.strip() and _UNDERLINE.match(line):
        return without_markup(before)
    return None
