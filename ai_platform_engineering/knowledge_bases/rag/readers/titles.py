"""What a document is called, and what a heading says without its markup."""

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
_VERBATIM = re.compile(r"(?P<ticks>`+)\s?(?P<code>.+?)\s?(?P=ticks)|\\(?P<sign>[!-/:-@\[-`{-~])")
_KEPT = re.compile("\x00([0-9]+)\x00")
_INDEX = frozenset({"index", "readme", "_index", "default", "home"})


def without_markup(inline: str) -> str:
    """One line of Markdown as the words a reader sees."""
    text = inline[:_MAX_LINE_LENGTH].replace("\x00", "")
    verbatim: list[str] = []

    def keep(found: re.Match[str]) -> str:
        verbatim.append(found["code"] or found["sign"])
        return f"\x00{len(verbatim) - 1}\x00"

    if "`" in text or "\\" in text:
        text = _VERBATIM.sub(keep, text)
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
        text = _KEPT.sub(lambda found: verbatim[int(found[1])], text)
    return " ".join(text.split())


def shortened(title: str) -> str:
    """On one line, and no longer than a title is."""
    title = " ".join(title.split())
    if len(title) <= MAX_TITLE_LENGTH:
        return title
    return title[: MAX_TITLE_LENGTH - 1].rsplit(" ", 1)[0] + "…"


def title_from_name(name: str) -> str:
    """`guides/remote-agents.md` is called `Remote agents`; an index is called like the place it is in."""
    address = urlsplit(name) if "://" in name else None
    parts = [part for part in PurePosixPath(unquote(address.path) if address else name).parts if part != "/"]
    host = address.hostname if address else None
    while len(parts) > 1 and PurePosixPath(parts[-1]).stem.lower() in _INDEX:
        parts.pop()
    if not parts or (host and len(parts) == 1 and PurePosixPath(parts[0]).stem.lower() in _INDEX):
        return host or name
    words = " ".join(re.split(r"[-_\s]+", PurePosixPath(parts[-1]).stem)).strip()
    return shortened(words[:1].upper() + words[1:]) or name
