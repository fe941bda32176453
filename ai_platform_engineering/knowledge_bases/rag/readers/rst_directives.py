"""Converts directives of docutils, Sphinx and its extensions to nodes of the document.

One class handles all directives and accepts all options. The content of an unknown directive is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList

_START: Final = re.compile(r"\.\. +(?:\|[^|\n]{1,200}\| +)?(?P<name>[\w.+:-]{1,60}?) ?::(?=\s|$)")
_ON_FIRST_LINE: Final = re.compile(r"[^\n]*?::[^\S\n]+\S")
_OPTION: Final = re.compile(r":(?P<name>[^:`]+):(?:\s+(?P<value>.*))?$")
_CLASS_NAMES: Final = re.compile(r"[\w\s-]+")


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LEFT_TO_DOCUTILS: Final = names("csv-table list-table parsed-literal replace unicode")
_DROPPED: Final = names(
    "autosummary bibliography contents currentmodule date default-role footer header highlight highlightlang include "
    "index literalinclude meta module program py:currentmodule py:module raw role section-numbering sectnum "
    "tabularcolumns target-notes title toctree"
)
_CODE_WITH_LANGUAGE: Final = names("code code-block code-tab prompt sourcecode")
_CODE: Final[Mapping[str, str]] = {
    **dict.fromkeys(names("digraph doctest ipython jinja literal plantuml productionlist terminal testcode uml"), ""),
    "graphviz": "dot",
    "math": "math",
    "mermaid": "mermaid",
}
_TRANSPARENT: Final = names(
    "centered compound deflist epigraph glossary grid highlights hlist line-block pull-quote tab-set table tabs"
)
_CONDITIONS: Final = names("container cssclass ifconfig only rst-class")
"""Their argument is for the program that builds the pages, so it is dropped."""
_PICTURES: Final = names("figure image")
_TITLED: Final = names("admonition sidebar topic")
_ADMONITIONS: Final[Mapping[str, str]] = {
    **{
        name: name.capitalize() for name in names("attention caution danger error hint important note tip todo warning")
    },
    "seealso": "See also",
}
_VERSIONS: Final[Mapping[str, str]] = {
    "deprecated": "Deprecated since version",
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
}
_OBJECTS: Final = names(
    "attribute class classmethod cmdoption command confval data decorator delete describe describe-command enum "
    "enumerator envvar exception function get macro member method module object option patch post property put "
    "setting staticmethod struct type var"
)


def register_directives(text: str) -> None:
    """Register all directives in the text: docutils drops the content of unknown ones.

    The registry is global, but always maps a name to the same class.
    """
    for name in {found["name"].lower() for found in _START.finditer(text)} - _LEFT_TO_DOCUTILS:
        directives.register_directive(name, _Directive)


class _Directive(Directive):
    """Parses its arguments and options itself: docutils rejects the whole directive for an unknown option."""

    has_content = True

    def run(self) -> Sequence[nodes.Node]:
        name = self.name.lower()
        if name in _DROPPED:
            return []
        argument, options, body = self._parts(name)
        if name in _CODE or name in _CODE_WITH_LANGUAGE:
            caption = _paragraph(self._inline(options.get("caption", "")))
            return [caption, _code(name, argument, body)]
        if name in _ADMONITIONS or name in _VERSIONS or name in _TITLED:
            return [self._admonition(name, argument, body)]
        if name in _PICTURES:
            picture = nodes.image(uri="".join(argument.split()), alt=options.get("alt", ""))
            return [picture, *self._parsed(body)]
        if name in _CONDITIONS:
            # The content may contain sections, so it is parsed into the document itself.
            self.state.nested_parse(StringList(body, source=""), self.content_offset, match_titles=True)
            return []
        return [*self._heading(name, argument), *self._parsed(body)]

    def _parts(self, name: str) -> tuple[str, dict[str, str], list[str]]:
        """The argument, the options, and the lines of the content."""
        lines = list(self.content)
        arguments = [lines.pop(0)] if lines and _ON_FIRST_LINE.match(self.block_text) else []
        options: dict[str, str] = {}
        option = ""
        while lines and lines[0].strip():
            found = _OPTION.match(lines[0])
            if found is not None:
                option = found["name"]
                options[option] = (found["value"] or "").strip()
            elif option and lines[0].startswith(" "):
                options[option] += f" {lines[0].strip()}"
            elif not option and arguments and (name in _PICTURES or _is_object(name)):
                arguments.append(lines[0])
            else:
                break
            lines.pop(0)
        return "\n".join(map(str.strip, arguments)), options, lines

    def _parsed(self, lines: Iterable[str]) -> list[nodes.Node]:
        parent = nodes.Element()
        self.state.nested_parse(StringList(list(lines), source=""), self.content_offset, parent, match_titles=True)
        return list(parent.children)

    def _inline(self, text: str) -> list[nodes.Node]:
        return list(self.state.inline_text(text, self.lineno)[0])

    def _admonition(self, name: str, argument: str, body: Sequence[str]) -> nodes.admonition:
        if name in _TITLED:
            title = self._inline(argument)
        elif name in _VERSIONS:
            version, _, rest = argument.partition(" ")
            title, body = [nodes.Text(f"{_VERSIONS[name]} {version}")], [rest, *body]
        else:
            title, body = [nodes.Text(_ADMONITIONS[name])], [argument, *body]
        return nodes.admonition("", nodes.title("", "", *title), *self._parsed(body))

    def _heading(self, name: str, argument: str) -> list[nodes.Node]:
        # `class` has two meanings: CSS classes, or the signature of a class.
        if not argument or (name == "class" and _CLASS_NAMES.fullmatch(argument)):
            return []
        if _is_object(name):
            signatures = (nodes.literal(line, line) for line in argument.split("\n"))
            return [_paragraph([part for signature in signatures for part in (signature, nodes.Text("\n"))][:-1])]
        words = self._inline(argument)
        return [_paragraph(words if name in _TRANSPARENT else [nodes.strong("", "", *words)])]


def _is_object(name: str) -> bool:
    """`function`, `py:method`, `autodata`."""
    return name.rpartition(":")[2].removeprefix("auto") in _OBJECTS


def _code(name: str, argument: str, body: Sequence[str]) -> nodes.literal_block:
    if name in _CODE:
        language, text = _CODE[name], "\n".join((argument, *body))
    else:
        language, text = re.sub(r"[^\w+#.-]", "", argument.partition(" ")[0]), "\n".join(body)
    return nodes.literal_block(text, text, language=language)


def _paragraph(children: Iterable[nodes.Node]) -> nodes.paragraph:
    return nodes.paragraph("", "", *children)
