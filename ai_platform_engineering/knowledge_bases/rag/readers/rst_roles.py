"""Converts roles of Sphinx and its extensions to nodes of the document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from docutils import nodes
from docutils.parsers.rst import roles
from docutils.parsers.rst.states import Inliner

from ai_platform_engineering.knowledge_bases.rag.readers.rst_directives import names

_USE: Final = re.compile(r":(?P<before>[\w.+:-]{1,60}):`|`:(?P<after>[\w.+:-]{1,60}):")
_TARGETED: Final = re.compile(r"(?:(?P<title>.*?)\s+)?<(?P<target>[^<>]+)>", re.DOTALL)
_LEFT_TO_DOCUTILS: Final = names(
    "code emphasis literal math pep pep-reference rfc rfc-reference strong sub subscript sup superscript"
)
_TEXT: Final = names(
    "abbr any doc download guilabel index issue menuselection numref ref t term title title-reference topic"
)


def register_roles(text: str) -> None:
    """Register all roles in the text: docutils rejects substitutions with unknown ones.

    The registry is global, but always maps a name to the same function.
    """
    for name in {(found["before"] or found["after"]).lower() for found in _USE.finditer(text)} - _LEFT_TO_DOCUTILS:
        roles.register_canonical_role(name, _role)


def _role(
    name: str,
    rawtext: str,
    text: str,
    _lineno: int,
    _inliner: Inliner,
    _options: Mapping[str, Any] | None = None,
    _content: Sequence[str] | None = None,
) -> tuple[list[Any], list[Any]]:
    words = nodes.unescape(text)
    targeted = _TARGETED.fullmatch(words)
    if targeted is not None:
        return [nodes.Text(targeted["title"] or targeted["target"])], []
    if name.rpartition(":")[2].lower() in _TEXT:
        return [nodes.Text(words)], []
    if words.startswith("~"):
        words = words.rpartition(".")[2].removeprefix("~")
    return [nodes.literal(rawtext, words.removeprefix("!"))], []
