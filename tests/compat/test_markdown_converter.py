"""The pseudo tags of markdownify that `compat/markdown_converter.py` names."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

from ai_platform_engineering.compat.markdown_converter import INLINE, NO_FORMAT

CHANGED = f"markdownify {version('markdownify')} changed a part that compat/markdown_converter.py names"


class Recording(MarkdownConverter):
    parents: set[str]

    def convert_span(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        self.parents = set(parent_tags)
        return text


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<h2><span>x</span></h2>", {INLINE}),
        ("<table><tr><td><span>x</span></td></tr></table>", {INLINE}),
        ("<pre><span>x</span></pre>", {NO_FORMAT}),
        ("<p><span>x</span></p>", set()),
    ],
)
def test_the_parents_of_a_node_have_the_pseudo_tags(markup: str, expected: set[str]) -> None:
    converter = Recording()
    converter.convert_soup(BeautifulSoup(markup, "html.parser"))
    found = {name for name in converter.parents if name.startswith("_")}
    assert found == expected, f"{CHANGED}: inside of {markup} the pseudo tags are {sorted(found)}."
