"""The private parts of Beautiful Soup that `compat/html_parser.py` uses."""

from __future__ import annotations

import inspect
import time
from importlib.metadata import version

import pytest

CHANGED = f"Beautiful Soup {version('beautifulsoup4')} changed a part that compat/html_parser.py uses"

try:
    from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder

    from ai_platform_engineering.compat.html_parser import OpenTagSoup
except ImportError as error:
    raise ImportError(f"{CHANGED}: the html.parser builder is not where it was ({error}).") from error


class Recording(OpenTagSoup):
    """Closes a paragraph that is still open when the next one starts."""

    def __init__(self, markup: str) -> None:
        self.started: list[tuple[str, list[str]]] = []
        super().__init__(markup)

    def before_start_tag(self, name: str) -> None:
        if name == "p" and self.open_tags[-1].name == "p":
            self.close_tags(1)
        self.started.append((name, [tag.name for tag in self.open_tags]))


def test_the_builder_takes_the_class_of_its_parser() -> None:
    assert list(inspect.signature(HTMLParserTreeBuilder.feed).parameters) == ["self", "markup", "_parser_class"], (
        f"{CHANGED}: HTMLParserTreeBuilder.feed takes other arguments, so the parser class cannot be passed to it."
    )
    assert callable(getattr(BeautifulSoupHTMLParser, "handle_data", None)), f"{CHANGED}: the parser has no handle_data."


@pytest.mark.parametrize("name", ["handle_starttag", "endData", "popTag"])
def test_the_tree_has_the_methods(name: str) -> None:
    assert callable(getattr(OpenTagSoup, name, None)), f"{CHANGED}: BeautifulSoup has no method {name}."


def test_every_start_tag_is_announced_with_the_tags_that_are_open() -> None:
    tree = Recording("<ul><li>one</li></ul>")
    assert tree.started == [("ul", ["[document]"]), ("li", ["[document]", "ul"])], (
        f"{CHANGED}: handle_starttag or tagStack does not give the open tags before a tag starts."
    )


def test_an_open_tag_can_be_closed_with_its_text() -> None:
    tree = Recording("<p>one<p>two")
    assert str(tree) == "<p>one</p><p>two</p>", f"{CHANGED}: endData and popTag do not close the innermost tag."


def test_an_unfinished_tag_is_text_at_once() -> None:
    began = time.monotonic()
    tree = OpenTagSoup("<p>text</p>" + "<a " * 50_000)
    assert tree.get_text().startswith("text<a <a"), f"{CHANGED}: rawdata is not the markup that is left at the end."
    assert time.monotonic() - began < 10, f"{CHANGED}: an unfinished tag is parsed again from each `<` in it."
