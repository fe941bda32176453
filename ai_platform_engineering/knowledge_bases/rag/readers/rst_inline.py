"""What stands inside of a line of reStructuredText: literals, roles, links, substitutions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_TARGET: Final = re.compile(
    r"^\s*\.\. _(?P<name>`[^`]+`|[^:`\n]+(?::\S[^:\n]*)*):[^\S\n]+(?P<address>\S+)[^\S\n]*$", re.M
)
_SUBSTITUTION: Final = re.compile(
    r"^\s*\.\. \|(?P<name>[^|\n]+)\|[^\S\n]+(?:replace|unicode)::[^\S\n]*(?P<text>.*(?:\n[^\S\n]+\S.*)*)$", re.M
)
_MARKUP: Final = re.compile(
    r"""
    ``(?P<literal>.+?)``(?!`)
    | :(?P<role>[\w.+:-]{1,60}):`(?P<interpreted>[^`]+)`
    | `(?P<suffixed>[^`]+)`:(?P<suffix_role>[\w.+:-]{1,60}):
    | (?<![\w`])`(?P<phrase>[^`]+)`(?P<link>__?)?
    | \|(?P<substitution>[^|\s](?:[^|\n]*[^|\s])?)\|_{0,2}
    | (?<![\w\[])\[(?P<footnote>\#?[\w.-]*|\*)\]_\b
    | (?<![\w`.+:-])(?P<word>[A-Za-z0-9]{1,40}(?:[-.+:][A-Za-z0-9]{1,40}){0,8})__?(?![\w`])
    """,
    re.VERBOSE | re.DOTALL,
)
_TITLED: Final = re.compile(r"(?:(?P<title>.*?)\s+)?<(?P<target>[^<>]+)>$", re.DOTALL)
_ESCAPED_SPACE: Final = re.compile(r"\\\s")
_TEXT_ROLES: Final = frozenset(
    {"abbr", "any", "doc", "download", "emphasis", "guilabel", "menuselection", "numref", "ref", "strong", "sub", "sup"}
    | {"subscript", "superscript", "t", "term", "title", "title-reference", "topic", "index", "pep", "rfc", "issue"}
)


@dataclass(frozen=True, slots=True)
class Inline:
    """Turns lines into Markdown, with what the document defines elsewhere: addresses and substitutions."""

    targets: Mapping[str, str] = field(default_factory=dict)
    substitutions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, document: str) -> Inline:
        links = cls({_key(found["name"].strip("`")): found["address"] for found in _TARGET.finditer(document)})
        return cls(
            links.targets,
            {
                found["name"]: links.markdown(" ".join(found["text"].split()))
                for found in _SUBSTITUTION.finditer(document)
            },
        )

    def markdown(self, text: str) -> str:
        return _ESCAPED_SPACE.sub("", _MARKUP.sub(self._replacement, text))

    def _replacement(self, found: re.Match[str]) -> str:
        match found.lastgroup:
            case "literal":
                text = code(found["literal"])
            case "interpreted":
                text = _role(found["role"], found["interpreted"])
            case "suffix_role":
                text = _role(found["suffix_role"], found["suffixed"])
            case "phrase" | "link":
                text = self._phrase(found["phrase"], linked=found["link"] is not None)
            case "substitution":
                text = self.substitutions.get(found["substitution"], found[0])
            case "footnote":
                text = f"[{found['footnote']}]"
            case _:
                text = self._word(found)
        return text

    def _phrase(self, phrase: str, *, linked: bool) -> str:
        if not linked:
            return f"`{phrase}`"
        titled = _TITLED.match(phrase)
        if titled is None:
            return _link(phrase, self.targets.get(_key(phrase)))
        target = titled["target"]
        address = self.targets.get(_key(target.removesuffix("_"))) if target.endswith("_") else target
        return _link(titled["title"] or target, address)

    def _word(self, found: re.Match[str]) -> str:
        address = self.targets.get(_key(found["word"]))
        return found[0] if address is None else _link(found["word"], address)


def code(text: str) -> str:
    text = " ".join(text.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _role(role: str, text: str) -> str:
    titled = _TITLED.match(text)
    words = (titled["title"] or titled["target"]) if titled else text
    name = role.rpartition(":")[2].lower()
    if name in _TEXT_ROLES or titled:
        return " ".join(words.split())
    if words.startswith("~"):
        words = words.rpartition(".")[2].removeprefix("~")
    return code(words.removeprefix("!"))


def _link(words: str, address: str | None) -> str:
    words = " ".join(words.split())
    if address is None or not address.startswith(("http://", "https://")):
        return words
    return f"<{address}>" if words == address else f"[{words}]({address})"


def _key(name: str) -> str:
    return " ".join(name.lower().split())
