"""Slack's markup as plain text, as its author saw it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TAG = re.compile(r"<([^<>\n]+)>")
_MENTION = re.compile(r"<@([UWB][A-Z0-9]+)(?:\|[^<>]*)?>")


def mentions(text: str) -> frozenset[str]:
    """The user ids of all mentions."""
    return frozenset(_MENTION.findall(text))


def readable(text: str, *, without: str = "", names: Mapping[str, str] | None = None) -> str:
    """The text with names instead of tags. Mentions of `without` are removed; `names` are people's names by id."""
    known = names or {}
    if without:
        text = re.sub(rf"[ \t]*<@{re.escape(without)}(?:\|[^<>]*)?>[:,]?", "", text)
    # Typed text cannot contain a tag: "<" arrives as "&lt;".
    shown = _TAG.sub(lambda tag: _shown(tag[1], known), text)
    # Slack escapes exactly these three characters.
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _shown(tag: str, names: Mapping[str, str]) -> str:
    target, _, label = tag.partition("|")
    match target[0]:
        case "@":
            return f"@{names.get(target[1:]) or label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":
            return _group(target[1:], label)
        case _:
            return _link(target, label)


def _group(target: str, label: str) -> str:
    if target.startswith("date^"):
        return label
    name = label or target.partition("^")[0]
    return name if name.startswith("@") else f"@{name}"


def _link(target: str, label: str) -> str:
    address = re.sub(r"^(mailto|tel):", "", target)
    # Slack turns addresses into links; the label is then the address, with or without its scheme.
    if not label or label == address or re.sub(r"^https?://", "", address).rstrip("/") == label.rstrip("/"):
        return label or address
    return f"{label} ({address})"
