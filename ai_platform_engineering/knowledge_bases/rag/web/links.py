"""Links of an HTML page: where it leads, and what it calls its own address.

Found by scanning, in time that grows with the size of the page and no faster, whatever is written in it: pages of
strangers are scanned, and the parser of the standard library takes hours for a few megabytes of unfinished tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final

# A tag ends at its ">"; one that has not ended before the next "<" is none.
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
    """As they are written in the page. `base` is what relative ones start from, where the page says so."""

    targets: tuple[str, ...]
    canonical: str | None = None
    base: str | None = None


def links_of(content: bytes) -> Links:
    # Every encoding of pages has ASCII where ASCII is, but for UTF-16, which next to none has.
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
