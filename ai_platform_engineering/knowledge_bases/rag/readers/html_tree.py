"""The tree of a page as a browser builds it: an unclosed tag ends where the next one of its kind starts.

Without this, the parser nests the items of an unclosed list in each other, thousands of levels deep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ai_platform_engineering.compat.html_parser import OpenTagSoup


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BLOCKS: Final = names(
    "address article aside blockquote center details dialog div dl dd dt fieldset figcaption figure footer form h1 h2 "
    "h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre section summary table ul"
)
_CELLS: Final = frozenset({"td", "th"})
_ROWS: Final = _CELLS | {"tr"}
_ROW_GROUPS: Final = frozenset({"thead", "tbody", "tfoot"})
_TERMS: Final = frozenset({"dt", "dd"})

# By the name of a start tag: the open tags that it closes, and the containers beyond which it closes none.
_CLOSED_BY: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    **dict.fromkeys(_BLOCKS, (frozenset({"p"}), frozenset({*_BLOCKS, *_CELLS, "body", "button"}) - {"p"})),
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset({"dl"}))),
    **dict.fromkeys(_CELLS, (_CELLS, frozenset({"tr", "table"}))),
    "tr": (_ROWS, frozenset({*_ROW_GROUPS, "table"})),
    **dict.fromkeys(_ROW_GROUPS, (_ROWS | _ROW_GROUPS, frozenset({"table"}))),
    "option": (frozenset({"option"}), frozenset({"select", "datalist"})),
}
_MAX_DISTANCE: Final = 40
"""Open tags that are searched for one to close."""
_MAX_DEPTH: Final = 200
"""Browsers limit the nesting as well. A tag below this depth becomes a sibling of its parent."""
_PROCESSING_INSTRUCTION: Final = re.compile(r"<\?[^<>]*>")


class PageTree(OpenTagSoup):
    def __init__(self, markup: str) -> None:
        # HTML has no processing instructions; an unfinished one makes the parser warn that the markup is XML.
        super().__init__(_PROCESSING_INSTRUCTION.sub("", markup).replace("<?", "< ?"))

    def before_start_tag(self, name: str) -> None:
        if name in _CLOSED_BY:
            self._close(*_CLOSED_BY[name])
        if len(self.open_tags) > _MAX_DEPTH:
            self.close_tags(1)

    def _close(self, kinds: frozenset[str], inside: frozenset[str]) -> None:
        """Close the outermost open tag of these kinds, and all tags in it."""
        depth = 0
        for distance, tag in enumerate(reversed(self.open_tags[-_MAX_DISTANCE:]), 1):
            if tag.name in kinds:
                depth = distance
            elif tag.name in inside:
                break
        if depth:
            self.close_tags(depth)
