"""Converts the content of a page to Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urljoin, urlsplit

from bs4 import Tag
from markdownify import ATX, MarkdownConverter

from ai_platform_engineering.compat.markdown_converter import INLINE, NO_FORMAT
from ai_platform_engineering.knowledge_bases.rag.readers.html_tree import names

_TAGS: Final = {
    **{
        name: name
        for name in names(
            "a b blockquote br caption code del div dl dt em figcaption h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre q s "
            "samp strong sub sup table tbody td tfoot th thead tr ul"
        )
    },
    **dict.fromkeys(
        names(
            "address article aside body center dd details dialog fieldset figure footer form header hgroup html legend "
            "main nav section summary"
        ),
        "div",
    ),
    **dict.fromkeys(("dir", "menu"), "ul"),
    **dict.fromkeys(("listing", "plaintext", "xmp"), "pre"),
    "tt": "code",
    "var": "em",
    "cite": "em",
}
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_TABLE_PARTS: Final = ("table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption")
_NEVER_IN_CELLS: Final = ("table", "pre", *sorted(_HEADINGS))
_LANGUAGE: Final = re.compile(r"(?:language|lang|highlight-source|highlight|brush:?)-?([\w+#.-]+)$")
_NO_LANGUAGES: Final = frozenset({"", "default", "none", "plain", "plaintext", "text", "notranslate", "highlight"})
_SCHEMES: Final = frozenset({"http", "https", "ftp", "mailto"})
_FENCE: Final = re.compile(r"[\s>]*(?:[-\d.]+ +)*(`{3,})")
_SPACES: Final = re.compile(r"(?<=\S)  +")
_BACKTICKS: Final = re.compile(r"`+")


def markdown_of(content: Tag, base_url: str | None) -> str:
    """Modifies the content."""
    _normalise(content)
    markdown = _Converter(base_url).convert_soup(content)
    return "\n".join(_without_gaps(markdown.strip().split("\n")))


def _without_gaps(lines: Iterable[str]) -> Iterator[str]:
    """Reduce several blank lines to one, except in code."""
    fence: str | None = None
    blank = False
    for line in lines:
        fence_line = _FENCE.match(line)
        if fence_line and (fence is None or (fence_line[1] == fence and line.endswith(fence))):
            fence = fence_line[1] if fence is None else None
        if line.strip() or fence is not None or not blank:
            yield line if fence is not None or fence_line else _SPACES.sub(" ", line).rstrip()
        blank = not line.strip()


def _normalise(content: Tag) -> None:
    """Rename all tags to ones that the converter knows: it looks up a method by the name of a tag."""
    _replace_layout_tables(content)
    for block in content.find_all("pre"):
        _separate(block)
    for tag in (content, *content.find_all(True)):
        tag.name = _TAGS.get(tag.name, "span")
        if tag.name == "ol":
            for number, item in enumerate(tag.find_all("li", recursive=False), _first_number(tag)):
                item["value"] = str(number)
        elif tag.name in {"td", "th"}:
            tag.attrs = {}


def _separate(block: Tag) -> None:
    """Split a block that has the same example in several languages into one block for each."""
    parts = block.find_all("code", recursive=False)
    if len(parts) > 1:
        for part in parts:
            part.name = "pre"
        block.name = "div"


def _replace_layout_tables(content: Tag) -> None:
    """Replace tables that are used for layout, or for line numbers of code."""
    layout = {id(_table_of(tag)) for tag in content.find_all(_NEVER_IN_CELLS)}
    filled = Counter(
        id(_table_of(cell)) for cell in content.find_all(("td", "th")) if any(map(str.strip, cell.strings))
    )
    parts = [(part, id(part if part.name == "table" else _table_of(part))) for part in content.find_all(_TABLE_PARTS)]
    for part, table in parts:
        if table in layout or filled[table] <= 1:
            part.name = "div"


def _table_of(tag: Tag) -> Tag | None:
    return next((parent for parent in tag.parents if parent.name == "table"), None)


def _first_number(ordered: Tag) -> int:
    start = ordered.get("start")
    return int(start) if isinstance(start, str) and re.fullmatch(r"[0-9]{1,6}", start) else 1


class _Converter(MarkdownConverter):
    """Escapes only characters that would change the kind of a block, so that words stay searchable."""

    def __init__(self, base_url: str | None) -> None:
        super().__init__(
            heading_style=ATX,
            escape_asterisks=False,
            escape_underscores=False,
            wrap=True,
            wrap_width=None,
        )
        self._base_url = base_url

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        words = text.strip()
        href = el.get("href")
        if not words or NO_FORMAT in parent_tags or "\n" in words or parent_tags & _HEADINGS:
            return text
        address = self._address(href) if isinstance(href, str) else None
        if address is None:
            return text
        link = f"<{address}>" if address == words else f"[{words}]({address})"
        return text.replace(words, link, 1)

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        alt, source = el.get("alt"), el.get("src")
        words = " ".join(alt.split()) if isinstance(alt, str) else ""
        if not words or INLINE in parent_tags or "a" in parent_tags:
            return words
        address = self._address(source) if isinstance(source, str) else None
        return f"![{words}]({address})" if address else words

    def convert_br(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "pre" in parent_tags:
            return "\n" + text
        return " " if INLINE in parent_tags else "\n" + text

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        code = text.strip("\n").rstrip()
        if not code.strip():
            return ""
        fence = "`" * max(3, max((len(run) for run in _BACKTICKS.findall(code)), default=0) + 1)
        return f"\n\n{fence}{_language(el)}\n{code}\n{fence}\n\n"

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        words = text.strip()
        if INLINE in parent_tags or not words:
            return f" {words} "
        return f"\n\n\\{words}\n\n" if words.startswith("#") else f"\n\n{words}\n\n"

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        words = text.strip()
        if not words:
            return "\n"
        number = el.get("value")
        bullet = f"{number}. " if isinstance(number, str) and number.isdecimal() else "- "
        indented = (f"{' ' * len(bullet)}{line}" if line else "" for line in words.split("\n"))
        return bullet + "\n".join(indented)[len(bullet) :] + "\n"

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return " " + " ".join(text.split()).replace("|", "\\|") + " |"

    convert_th = convert_td

    def _address(self, reference: str) -> str | None:
        """None for a link within the page, or with a scheme that is not supported."""
        reference = reference.strip()
        if not reference or reference.startswith("#"):
            return None
        try:
            address = urljoin(self._base_url, reference) if self._base_url else reference
            if urlsplit(address).scheme.lower() not in {*_SCHEMES, ""}:
                return None
        except ValueError:
            return None
        return re.sub(r"[\s()<>]", lambda found: f"%{ord(found[0]):02X}", address)


def _language(pre: Tag) -> str:
    """The language in the attributes of the block, of the code in it, or of the elements around it."""
    code = pre.find("code")
    elements = [
        element for element in (code, pre, pre.parent, pre.parent and pre.parent.parent) if isinstance(element, Tag)
    ]
    for element in elements:
        for attribute in ("data-lang", "data-language"):
            value = element.get(attribute)
            if isinstance(value, str) and value.lower() not in _NO_LANGUAGES:
                return _word(value)
        names = element.get("class")
        for name in names if isinstance(names, list) else (names or "").split():
            found = _LANGUAGE.match(name.lower())
            if found and found[1] not in _NO_LANGUAGES:
                return _word(found[1])
    return ""


def _word(language: str) -> str:
    return re.sub(r"[^\w+#.-]", "", language)[:30]


def heading_of(content: Tag, kind: str) -> str | None:
    """The text of the first heading of this kind that is not empty."""
    headings = (" ".join("".join(heading.strings).split()) for heading in content.find_all(kind))
    return next(filter(None, headings), None)
