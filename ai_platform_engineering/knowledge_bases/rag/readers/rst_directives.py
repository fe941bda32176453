"""Directives of reStructuredText: what each of them is in Markdown. The words in them are kept, unknown ones' too."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.readers.rst_inline import Inline, code
from ai_platform_engineering.knowledge_bases.rag.readers.rst_tables import table

START: Final = re.compile(r"\.\. (?:\|[^|]+\| +)?(?P<name>[A-Za-z][\w.+:-]*?) ?::(?: +(?P<argument>.*))?$")
_OPTION: Final = re.compile(r":(?P<name>[\w. -]+):(?: +(?P<value>.*))?$")
_BULLET: Final = re.compile(r"(?P<indent> *)[-*+](?: +|$)(?P<text>.*)$")

_CODE: Final = frozenset(
    {"code", "code-block", "sourcecode", "parsed-literal", "prompt", "testcode", "doctest", "ipython", "productionlist"}
    | {"math", "graphviz", "digraph", "mermaid", "uml", "plantuml", "jinja", "literal", "terminal", "code-tab"}
)
_SILENT: Final = frozenset(
    {"toctree", "contents", "index", "meta", "raw", "include", "literalinclude", "highlight", "default-role", "role"}
    | {"sectnum", "section-numbering", "tabularcolumns", "replace", "unicode", "date", "currentmodule", "program"}
    | {"module", "py:module", "py:currentmodule", "title", "header", "footer", "target-notes", "bibliography"}
    | {"autosummary", "highlightlang"}
)
_TRANSPARENT: Final = frozenset(
    {"only", "ifconfig", "container", "class", "rst-class", "cssclass", "compound", "epigraph", "highlights"}
    | {"pull-quote", "table", "glossary", "hlist", "centered", "tabs", "tab-set", "grid", "line-block", "deflist"}
)
_ADMONITIONS: Final[Mapping[str, str]] = {
    **{
        name: name.capitalize()
        for name in ("attention", "caution", "danger", "error", "hint", "important", "note", "tip", "warning", "todo")
    },
    "seealso": "See also",
}
_VERSIONS: Final[Mapping[str, str]] = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
}
_OBJECTS: Final = frozenset(
    {
        "function",
        "class",
        "method",
        "module",
        "attribute",
        "data",
        "exception",
        "classmethod",
        "staticmethod",
        "property",
    }
    | {"decorator", "option", "cmdoption", "envvar", "confval", "setting", "command", "macro", "type", "member", "var"}
    | {
        "struct",
        "enum",
        "enumerator",
        "get",
        "post",
        "put",
        "delete",
        "patch",
        "describe",
        "object",
        "describe-command",
    }
)


@dataclass(frozen=True, slots=True)
class Directive:
    name: str
    argument: str
    options: Mapping[str, str]
    body: Sequence[str]
    """Its lines, without their common indentation."""

    @classmethod
    def of(cls, first: str, body: Sequence[str]) -> Directive | None:
        start = START.match(first)
        if start is None:
            return None
        name, argument = start["name"].lower(), (start["argument"] or "").strip()
        options: dict[str, str] = {}
        rest = list(body)
        # Signatures and titles go on in the next lines; what goes on in a note is its text.
        goes_on = argument and (_is_object(name) or name in {"figure", "image"})
        while rest and rest[0].strip():
            option = _OPTION.match(rest[0])
            if option is not None:
                options[option["name"]] = (option["value"] or "").strip()
            elif goes_on and not options:
                argument += "\n" + rest[0].strip()
            else:
                break
            rest.pop(0)
        return cls(name, argument, options, rest)


Blocks = Callable[[Sequence[str]], str]


def markdown(directive: Directive, inline: Inline, blocks: Blocks) -> str:
    """`blocks` makes Markdown of the lines in it."""
    name = directive.name
    if name in _SILENT:
        return ""
    if name in _CODE:
        return _code(directive)
    if name in _ADMONITIONS or name in {"admonition", "topic", "sidebar"} or name in _VERSIONS:
        return _note(directive, inline, blocks)
    if name in {"image", "figure"}:
        return _picture(directive, blocks)
    if name in {"csv-table", "list-table"}:
        return _table(directive, inline)
    return _other(directive, inline, blocks)


def _is_object(name: str) -> bool:
    """`py:function`, `autofunction`: what describes a thing of a program."""
    return name.rpartition(":")[2].removeprefix("auto") in _OBJECTS


def fenced(lines: Sequence[str], language: str = "") -> str:
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    if not lines:
        return ""
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _code(directive: Directive) -> str:
    caption = directive.options.get("caption", "")
    if directive.name in {"code", "code-block", "sourcecode", "prompt", "code-tab"}:
        language, lines = directive.argument.split(" ")[0], directive.body
    else:
        language = {"math": "math", "mermaid": "mermaid", "graphviz": "dot"}.get(directive.name, "")
        lines = [*directive.argument.split("\n"), *directive.body]
    return _joined(caption, fenced(lines, re.sub(r"[^\w+#.-]", "", language)))


def _note(directive: Directive, inline: Inline, blocks: Blocks) -> str:
    name, argument = directive.name, directive.argument
    if name in _ADMONITIONS:
        title, body = _ADMONITIONS[name], [argument, *directive.body]
    elif name in _VERSIONS:
        version, _, rest = argument.partition(" ")
        title, body = f"{_VERSIONS[name]} {version}", [rest, *directive.body]
    else:
        title, body = inline.markdown(argument), list(directive.body)
    text = blocks(body)
    if not text:
        return quoted(f"**{title}.**")
    # Before a list or code the title stands alone.
    between = "\n\n" if text[0] in "-`|>0123456789" else " "
    return quoted(f"**{title}:**{between}{text}")


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _picture(directive: Directive, blocks: Blocks) -> str:
    alt, address = directive.options.get("alt", ""), "".join(directive.argument.split())
    picture = f"![{alt}]({address})" if alt and address else ""
    return _joined(picture, blocks(directive.body) if directive.name == "figure" else "")


def _table(directive: Directive, inline: Inline) -> str:
    if directive.name == "csv-table":
        lines = [directive.options["header"]] if directive.options.get("header") else []
        lines += [line for line in directive.body if line.strip()]
        try:
            rows = list(csv.reader(lines, skipinitialspace=True))
        except csv.Error:
            return _joined(inline.markdown(directive.argument), fenced(directive.body))
    else:
        rows = _list_rows(directive.body)
    return _joined(inline.markdown(directive.argument), table(rows, inline.markdown))


def _list_rows(lines: Sequence[str]) -> list[list[str]]:
    """A row is an item of the list, a cell an item of the list in it."""
    rows: list[list[str]] = []
    column = 0
    for line in filter(str.strip, lines):
        row = _BULLET.match(line)
        text = line
        if row is not None and not row["indent"]:
            column = len(line) - len(row["text"])
            text = " " * column + row["text"]
            rows.append([])
        cell = _BULLET.match(text)
        if not rows:
            continue
        if cell is not None and len(cell["indent"]) == column:
            rows[-1].append(cell["text"])
        else:
            before = rows[-1].pop() if rows[-1] else ""
            rows[-1].append(f"{before} {text.strip()}".strip())
    return rows


def _other(directive: Directive, inline: Inline, blocks: Blocks) -> str:
    body = blocks(directive.body)
    if not directive.argument or directive.name in _TRANSPARENT:
        title = (
            "" if directive.name in {"only", "ifconfig", "container", "class"} else inline.markdown(directive.argument)
        )
        return _joined(title, body)
    if _is_object(directive.name):
        return _joined("\n".join(code(line) for line in directive.argument.split("\n")), body)
    return _joined(f"**{inline.markdown(directive.argument)}**", body)
