"""HTML that cannot be broken out of: text becomes part of it escaped."""

from __future__ import annotations

from html import escape
from typing import Final

from ai_platform_engineering.text.plain_text import clean

_VOID: Final = frozenset({"br", "hr", "input", "meta"})


class Html(str):
    """What is HTML already. Everything else is text."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | bool) -> Html:
    """An element. A `_` in the name of an attribute is a `-`, and one at its end goes: `class_`, `aria_label`."""
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(*content)}</{name}>")


def joined(*content: str) -> Html:
    return Html("".join(piece if isinstance(piece, Html) else escape(clean(piece)) for piece in content))


def _attribute(name: str, value: str | bool) -> str:
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{escape(clean(value))}"'
