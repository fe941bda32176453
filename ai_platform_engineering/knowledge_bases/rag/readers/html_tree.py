"""The tree of a page as a browser would build it: tags that are left open end where the next one of their kind begins.

The parser by itself would nest the items of such a list in each other, thousands deep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bs4 import BeautifulSoup, Tag
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder


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

# What the start of a tag ends, if it is open, and inside of what it would have to be.
_ENDS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    **dict.fromkeys(_BLOCKS, (frozenset({"p"}), frozenset({*_BLOCKS, *_CELLS, "body", "button"}) - {"p"})),
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset({"dl"}))),
    **dict.fromkeys(_CELLS, (_CELLS, frozenset({"tr", "table"}))),
    "tr": (_ROWS, frozenset({*_ROW_GROUPS, "table"})),
    **dict.fromkeys(_ROW_GROUPS, (_ROWS | _ROW_GROUPS, frozenset({"table"}))),
    "option": (frozenset({"option"}), frozenset({"select", "datalist"})),
}
_FURTHEST: Final = 40
# Browsers nest no deeper than some hundreds either; what goes on from there on becomes a neighbour.
_MAX_DEPTH: Final = 200
_PROCESSING_INSTRUCTION: Final = re.compile(r"<\?[^<>]*>")


class _Parser(BeautifulSoupHTMLParser):
    def close(self) -> None:
        """Take a tag that never ends for text at once: the parser would try it again from each `<` in it."""
        if "<" in self.rawdata:
            rest, self.rawdata = self.rawdata, ""
            if not rest.startswith("<!"):
                self.handle_data(rest)
        super().close()


class _Builder(HTMLParserTreeBuilder):
    def feed(self, markup: Any, _parser_class: type[BeautifulSoupHTMLParser] = _Parser) -> None:
        super().feed(markup, _parser_class)


class PageTree(BeautifulSoup):
    def __init__(self, markup: str) -> None:
        # They have no place in HTML; one that stays open would make the parser warn of XML.
        markup = _PROCESSING_INSTRUCTION.sub("", markup).replace("<?", "< ?")
        super().__init__(markup, builder=_Builder)

    def handle_starttag(self, name: str, *positional: Any, **named: Any) -> Tag | None:
        if name in _ENDS:
            self._end(*_ENDS[name])
        if len(self.tagStack) > _MAX_DEPTH:
            self.endData()
            self.popTag()
        return super().handle_starttag(name, *positional, **named)

    def _end(self, kinds: frozenset[str], inside: frozenset[str]) -> None:
        """Close the outermost open tag of these kinds, with all that is in it."""
        depth = 0
        for distance, tag in enumerate(reversed(self.tagStack[-_FURTHEST:]), 1):
            if tag.name in kinds:
                depth = distance
            elif tag.name in inside:
                break
        if depth:
            self.endData()
            for _ in range(depth):
                self.popTag()
