"""Converts inline nodes of docutils to Markdown."""

from __future__ import annotations

import re
from functools import singledispatch
from typing import Final

from docutils import nodes

_UNKNOWN_CITATION: Final = re.compile(r"(\[.+\])_")


def inline(node: nodes.Node) -> str:
    """The children of a node, without the markup of the node itself."""
    return "".join(map(_inline, node.children))


def code(text: str) -> str:
    text = one_line(text)
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def one_line(text: str) -> str:
    return " ".join(text.split())


@singledispatch
def _inline(node: nodes.Node) -> str:
    return inline(node)


@_inline.register
def _text(node: nodes.Text) -> str:
    return node.astext()


@_inline.register
def _nothing(_node: nodes.raw) -> str:
    return ""


@_inline.register
def _emphasis(node: nodes.emphasis) -> str:
    return f"*{inline(node)}*"


@_inline.register
def _strong(node: nodes.strong) -> str:
    return f"**{inline(node)}**"


@_inline.register(nodes.literal)
@_inline.register(nodes.math)
@_inline.register(nodes.title_reference)
def _code(node: nodes.Node) -> str:
    return code(node.astext())


@_inline.register
def _link(node: nodes.reference) -> str:
    words, address = one_line(inline(node)), node.get("refuri", "")
    if not words or not address.startswith(("http://", "https://")):
        return words
    return f"<{address}>" if words == address else f"[{words}]({address})"


@_inline.register(nodes.footnote_reference)
@_inline.register(nodes.citation_reference)
def _note(node: nodes.Node) -> str:
    return f"[{node.astext()}]"


@_inline.register
def _picture(node: nodes.image) -> str:
    # Most inline images are badges, whose address is useless.
    return str(node.get("alt", ""))


@_inline.register
def _unresolved(node: nodes.problematic) -> str:
    source = node.astext()
    citation = _UNKNOWN_CITATION.fullmatch(source)
    return citation[1] if citation else source
