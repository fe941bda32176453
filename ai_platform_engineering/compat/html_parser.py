"""Beautiful Soup: its private html.parser builder, and the stack of open tags that it keeps while it parses.

`OpenTagSoup` lets a subclass close tags before another one opens. Beautiful Soup has no public way to do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder


class _UnfinishedTagParser(BeautifulSoupHTMLParser):
    def close(self) -> None:
        """Treat an unfinished tag at the end as text. Otherwise, the parser retries from every `<` in it, which takes
        quadratic time."""
        if "<" in self.rawdata:
            rest, self.rawdata = self.rawdata, ""
            if not rest.startswith("<!"):
                self.handle_data(rest)
        super().close()


class _TreeBuilder(HTMLParserTreeBuilder):
    def feed(self, markup: Any, _parser_class: type[BeautifulSoupHTMLParser] = _UnfinishedTagParser) -> None:
        super().feed(markup, _parser_class)


class OpenTagSoup(BeautifulSoup):
    """A tree that calls `before_start_tag` for each start tag in the markup."""

    def __init__(self, markup: str) -> None:
        super().__init__(markup, builder=_TreeBuilder)

    def before_start_tag(self, name: str) -> None:
        """Overridden by a subclass that closes tags here."""

    @property
    def open_tags(self) -> Sequence[Tag]:
        """The outermost first. The first one is the document itself."""
        return self.tagStack

    def close_tags(self, count: int) -> None:
        """Close the innermost open tags."""
        self.endData()
        for _ in range(count):
            self.popTag()

    def handle_starttag(self, name: str, *positional: Any, **named: Any) -> Tag | None:
        self.before_start_tag(name)
        return super().handle_starttag(name, *positional, **named)
