"""The links of an HTML page, and its canonical address.

They are found with regular expressions in linear time, because the pages are untrusted: the parser of the standard
library takes hours for a few megabytes of unfinished tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final

# A tag ends at its ">". Text that reaches the next "<" first is not a tag.
_TAG: Final = re.compile(
    r"""<(?:(?P<skipped>!--|script\b|style\b|template\b|textarea\b)
        |(?P<name>a|area|base|link)\s(?P<attributes>(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+)>)""",
    re.IGNORECASE | re.VERBOSE,
)
_ENDS: Final = {
    "!--": re.compile("-->"),
    **{name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "template", "textarea")},
}
_ATTRIBUTE: Final = re.compile(
    r"""(?<![\w:-])(?P<name>href|rel)\s*+=\s*+(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)'|(?P<bare>[^\s"'<>]++))""",
    re.IGNORECASE,
)
_MAX_TAG_LENGTH: Final = 8192


@dataclass(frozen=True, slots=True)
class Links:
    """As written in the page. `base` is the address in its <base> tag, if there is one."""

    targets: tuple[str, ...]
    canonical: str | None = None
    base: str | None = None


def links_of(content: bytes) -> Links:
    # All encodings of web pages are supersets of ASCII, except for UTF-16, which is very rare.
    html = content.decode("utf-8", "replace")
    targets: dict[str, None] = {}
    canonical = base = None
    for name, attributes in _tags(html):
        href = unescape(attributes.get("href", "")).strip()
        if not href:
            continue
        match name:
            case "base":
                base = base or href
            case "link":
                if "canonical" in attributes.get("rel", "").lower().split():
                    canonical = canonical or href
            case _:
                targets[href] = None
    return Links(tuple(targets), canonical, base)


def _tags(html: str) -> Iterator[tuple[str, dict[str, str]]]:
    position = 0
    while found := _TAG.search(html, position):
        position = found.end()
        if skipped := found["skipped"]:
            end = _ENDS[skipped.lower()].search(html, position)
            if end is None:
                return
            position = end.end()
        elif len(found["attributes"]) <= _MAX_TAG_LENGTH:
            yield found["name"].lower(), _attributes(found["attributes"])


def _attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(text):
        value = next(value for value in (found["double"], found["single"], found["bare"]) if value is not None)
        attributes.setdefault(found["name"].lower(), value)
    return attributes
