"""Titles of documents, and the text of headings without markup."""

from __future__ import annotations

import re
from html import unescape
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

MAX_TITLE_LENGTH: Final = 200

_MAX_LINE_LENGTH: Final = 2000

_IMAGE = re.compile(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])")
_LINK = re.compile(r"\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<!--.*?-->")
_ANCHOR = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)")
_VERBATIM = re.compile(r"(?P<ticks>`+)\s?(?P<code>.+?)\s?(?P=ticks)|\\(?P<escaped>[!-/:-@\[-`{-~])")
_PLACEHOLDER = re.compile("\x00([0-9]+)\x00")
_INDEX = frozenset({"index", "readme", "_index", "default", "home"})


def without_markup(inline: str) -> str:
    """The visible text of one line of Markdown."""
    text = inline[:_MAX_LINE_LENGTH].replace("\x00", "")
    verbatim: list[str] = []

    def protect(found: re.Match[str]) -> str:
        verbatim.append(found["code"] or found["escaped"])
        return f"\x00{len(verbatim) - 1}\x00"

    if "`" in text or "\\" in text:
        text = _VERBATIM.sub(protect, text)
    if "[" in text:
        text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    if "<" in text:
        text = _TAG.sub("", text)
    if "{" in text:
        text = _ANCHOR.sub("", text)
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(r"\2", text)
    if "&" in text:
        text = unescape(text)
    if verbatim:
        text = _PLACEHOLDER.sub(lambda found: verbatim[int(found[1])], text)
    return " ".join(text.split())


def shortened(title: str) -> str:
    """On one line, with at most `MAX_TITLE_LENGTH` characters."""
    title = " ".join(title.split())
    if len(title) <= MAX_TITLE_LENGTH:
        return title
    return title[: MAX_TITLE_LENGTH - 1].rsplit(" ", 1)[0] + "…"


def title_from_name(name: str) -> str:
    """`guides/remote-agents.md` becomes `Remote agents`. An index gets the name of its folder or host."""
    address = urlsplit(name) if "://" in name else None
    parts = [part for part in PurePosixPath(unquote(address.path) if address else name).parts if part != "/"]
    host = address.hostname if address else None
    while len(parts) > 1 and PurePosixPath(parts[-1]).stem.lower() in _INDEX:
        parts.pop()
    if not parts or (host and len(parts) == 1 and PurePosixPath(parts[0]).stem.lower() in _INDEX):
        return host or name
    words = " ".join(re.split(r"[-_\s]+", PurePosixPath(parts[-1]).stem)).strip()
    return shortened(words[:1].upper() + words[1:]) or name
