"""Builds HTML elements; every text that is not `Html` is escaped."""

from __future__ import annotations

from html import escape
from typing import Final

from ai_platform_engineering.utils.characters import clean

_VOID: Final = frozenset({"br", "hr", "input", "meta"})


class Html(str):
    """A string that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | bool) -> Html:
    """An element. In attribute names, `_` becomes `-` and a trailing `_` is removed: `class_`, `aria_label`."""
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
