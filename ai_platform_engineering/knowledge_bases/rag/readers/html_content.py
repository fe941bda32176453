"""The content of a page, without navigation, banners, forms and scripts.

trafilatura does the same, but on pages of Sphinx and MkDocs it drops table rows, code blocks and the language of code,
and keeps the permalink characters of headings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bs4 import Tag

from ai_platform_engineering.knowledge_bases.rag.readers.html_tree import names

_INVISIBLE: Final = names(
    "script style noscript template svg math-renderer iframe object embed canvas audio video map link meta"
)
_BOILERPLATE_TAGS: Final = names("nav button input select textarea datalist progress meter dialog")
_BOILERPLATE_ROLES: Final = names(
    "navigation banner contentinfo search menu menubar toolbar dialog alertdialog tablist"
)
_BOILERPLATE_NAMES: Final = names(
    "anchor-link anchorjs-link breadcrumb breadcrumbs gutter hash-link header-anchor headerlink heading-anchor "
    "line-numbers-rows lineno linenodiv linenos pagination prev-next rouge-gutter skip-link sphinxsidebar sr-only "
    "table-of-contents toc visually-hidden"
)
_NOTES: Final = ("admonition", "alert", "callout", "caution", "danger", "important", "info", "note", "tip", "warning")
_HEADINGS: Final = ("h1", "h2", "h3")


def content_of(page: Tag) -> Tag:
    """The element with the content of the page. Removes other elements from the page."""
    body = page.find("body") or page
    _clear(body)
    best: Tag = body
    for candidates in (body.find_all("main"), body.find_all(role="main"), body.find_all("article")):
        found = max(candidates, key=_size, default=None)
        # An article is the content only if it has most of the text: others are teasers of other pages.
        if found is not None and _size(found) > (_size(best) // 2 if found.name == "article" else 0):
            best = found
    return best


def clear_invisible(page: Tag) -> Tag:
    """The page without invisible elements, for pages that consist of navigation only."""
    for tag in page.find_all(_INVISIBLE):
        tag.decompose()
    return page.find("body") or page


def has_text(tag: Tag) -> bool:
    return any(text.strip() for text in tag.strings)


def _size(tag: Tag) -> int:
    return sum(len(text.strip()) for text in tag.strings)


def _clear(body: Tag) -> None:
    pending = [body]
    while pending:
        for child in list(pending.pop().children):
            if isinstance(child, Tag):
                if _is_boilerplate(child):
                    child.extract()
                else:
                    pending.append(child)


def _is_boilerplate(tag: Tag) -> bool:
    name = tag.name
    return (
        name in _INVISIBLE
        or name in _BOILERPLATE_TAGS
        or _is_page_frame(tag)
        or (bool(tag.attrs) and _has_boilerplate_attributes(tag))
    )


def _is_page_frame(tag: Tag) -> bool:
    match tag.name:
        case "aside":
            return not _is_note(tag)
        case "header":
            return tag.find_parent(["main", "article"]) is None and tag.find(["main", "article"]) is None
        case "footer":
            return tag.find(["main", "article"]) is None
        case "form":
            # Some servers wrap the whole page in one.
            return tag.find([*_HEADINGS, "main", "article"]) is None
        case _:
            return False


def _has_boilerplate_attributes(tag: Tag) -> bool:
    attributes = tag.attrs
    role = attributes.get("role")
    return (
        _is_permalink(tag)
        or role in _BOILERPLATE_ROLES
        or attributes.get("aria-hidden") == "true"
        or ("hidden" in attributes and role != "tabpanel")
        or not _BOILERPLATE_NAMES.isdisjoint(_class_names(tag))
    )


def _is_permalink(tag: Tag) -> bool:
    """The character after a heading that links to it."""
    href = tag.attrs.get("href")
    return isinstance(href, str) and "#" in href and not any(map(str.isalnum, tag.get_text()))


def _is_note(aside: Tag) -> bool:
    return aside.get("role") == "note" or any(note in name for name in _class_names(aside) for note in _NOTES)


def _class_names(tag: Tag) -> Iterator[str]:
    """Its classes and its id, normalized."""
    for attribute in ("class", "id"):
        value = tag.get(attribute)
        for name in value if isinstance(value, list) else (value or "").split():
            yield name.lower().replace("_", "-")
