"""Slack's own markup (mrkdwn), parsed into spans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

LINKED: Final = ("https://", "http://", "mailto:")

_MARKED: Final = re.compile(
    r"```\n?(?P<block>.+?)\n?```"
    r"|`(?P<code>[^`\n]+)`"
    r"|<(?P<reference>[^<>\n]+)>"
    r"|(?<![\w*])\*(?P<bold>[^*\n]+)\*(?![\w*])"
    r"|(?<![\w_])_(?P<italic>[^_\n]+)_(?![\w_])"
    r"|(?<![\w~])~(?P<struck>[^~\n]+)~(?![\w~])",
    re.DOTALL,
)
_ENTITIES: Final = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_ENTITY: Final = re.compile("|".join(_ENTITIES))


@dataclass(frozen=True, slots=True)
class Span:
    """Text with one format. `block` is a code block on its own lines."""

    text: str
    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    block: bool = False
    link: str = ""


Spans = tuple[Span, ...]


def spans_of(text: str, names: Mapping[str, str]) -> Spans:
    """Parse `text`. `names` are the names of people and channels by id."""
    return tuple(_spans(text, names, Span("")))


def _spans(text: str, names: Mapping[str, str], look: Span) -> Iterator[Span]:
    end = 0
    for match in _MARKED.finditer(text):
        yield from _plain(text[end : match.start()], look)
        end = match.end()
        inner = match[match.lastgroup or 0]
        match match.lastgroup:
            case "block":
                yield replace(look, text=_unescaped(inner), code=True, block=True)
            case "code":
                yield replace(look, text=_unescaped(inner), code=True)
            case "reference":
                yield _reference(inner, names, look)
            case "bold":
                yield from _spans(inner, names, replace(look, bold=True))
            case "italic":
                yield from _spans(inner, names, replace(look, italic=True))
            case _:
                yield from _spans(inner, names, replace(look, struck=True))
    yield from _plain(text[end:], look)


def _plain(text: str, look: Span) -> Iterator[Span]:
    if text:
        yield replace(look, text=_unescaped(text))


def _reference(text: str, names: Mapping[str, str], look: Span) -> Span:
    target, _, label = text.partition("|")
    label = _unescaped(label)
    match target[:1]:
        case "@" | "#" as sign:
            return replace(look, text=f"{sign}{label or names.get(target[1:], target[1:])}", bold=True)
        case "!":
            return replace(look, text=label or f"@{target[1:].partition('^')[0]}", bold=True)
    target = _unescaped(target)
    return replace(look, text=label or target, link=target if target.startswith(LINKED) else "")


def _unescaped(text: str) -> str:
    return _ENTITY.sub(lambda match: _ENTITIES[match[0]], text)
