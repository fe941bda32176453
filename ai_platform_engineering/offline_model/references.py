"""What a text refers back to: the thing, the kind of things, or the question that came before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.rendering import identity
from ai_platform_engineering.offline_model.sentences import QUOTED, requested_changes
from ai_platform_engineering.offline_model.vocabulary import QUESTION_WORDS, READ_VERBS

CONTEXT = "\n\nContext: "

_KINDS = (
    r"(?:app(?:lication)?|issue|ticket|bug|incident|alert|repo(?:sitory)?|pull\s+request|PR|service|project|one|thing)"
)
_PLURAL = re.compile(
    rf"\b(?:(?:all\s+)?of\s+(?:them|those|these)|them(?:\s+all)?|they|(?:those|these)(?:\s+{_KINDS}s)?)\b", re.I
)
_POSSESSIVE = re.compile(
    r"\b(?:its|their)\s+(?P<part>[\w-]+(?:\s+[\w-]+){0,2}?)(?=\s*(?:[?.!,;:]|$)|\s+(?:and|in|for|to|on|with|from|is|are)\b)",
    re.I,
)
_SINGULAR = re.compile(
    rf"\b(?:(?:this|that|the\s+same)\s+(?P<kind>{_KINDS})|the\s+same|it)\b(?!['’])"
    r"|\b(?:this|that)\b(?=\s*(?:[?.!,;]|$|again|now|please|to\b|as\b))",
    re.I,
)
_ORDINAL = re.compile(
    rf"\b(?:the\s+)?(?P<ordinal>first|second|third|fourth|fifth|last)(?:\s+(?P<kind>{_KINDS}))?(?=\s*(?:[?.!,;:]|$|\b(?:to|as|in|of|on|again|now|please|with|and)\b))",
    re.I,
)
_ONES = re.compile(r"\b(?:the\s+)?(?P<which>(?!first|second|third|last|other|same)[\w-]+)\s+ones\b", re.I)
_CONTINUES = re.compile(r"^\W*(?:and|also|but|then|ok(?:ay)?|now)\b[\s,]*", re.I)
_ABOUT = re.compile(r"^\W*(?:(?:and|but)\s+)?(?:(?:what|how)\s+about|same\s+for|and\s+for)\s+(?P<thing>.+?)\W*$", re.I)
_MORE = re.compile(
    r"^\W*(?:(?:tell|show|give)\s+me\s+)?(?:(?:some\s+)?more(?:\s+(?:details?|info(?:rmation)?))?|details?|why|go\s+on)\W*$",
    re.I,
)
_AGAIN = re.compile(
    r"^\W*(?:(?:and\s+)?(?:again|refresh|retry|try\s+(?:it\s+)?again|once\s+more|do\s+it\s+again))\W*$", re.I
)
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}

_ROW = re.compile(r"^\|(.+)\|\s*$")
_BULLET = re.compile(
    r"^(?:[-*]|\d+[.)])\s+(?:\*\*(?P<bold>[^*]+?)\*\*(?!\w)|`(?P<code>[^`]+)`|(?P<plain>[^\s*`:|][^\s*`|]*?)(?=:|\s+[-–—(]|$))"
)
_BOLD = re.compile(r"\*\*([^*\n:]+)\*\*")
_KEY = re.compile(r"\b[A-Z][A-Z0-9]+-\d+\b")


@dataclass(frozen=True, slots=True)
class Before:
    """What came before: the question, the answer to it, and the names in the question."""

    question: str
    answer: str
    names: Sequence[str] = ()


def without_context(question: str) -> str:
    """The request itself, without what the supervisor added for understanding it."""
    return question.split(CONTEXT, 1)[0].strip()


def refers_back(text: str) -> bool:
    plain = _undictated(text)
    return any(
        pattern.search(plain)
        for pattern in (_PLURAL, _ONES, _POSSESSIVE, _SINGULAR, _ORDINAL, _CONTINUES, _ABOUT, _MORE, _AGAIN)
    )


def asks_for_more(text: str) -> bool:
    """Whether the text asks for the same once more, or for more of it, and says nothing else."""
    return bool(_MORE.match(text) or _AGAIN.match(text))


def has_pronoun(text: str) -> bool:
    plain = _undictated(text)
    return any(pattern.search(plain) for pattern in (_PLURAL, _POSSESSIVE, _SINGULAR))


def _undictated(text: str) -> str:
    """The text up to what is to be written down word for word, where a pronoun belongs to the writing."""
    return re.split(r"(?<=\w):\s", QUOTED.sub(lambda match: "." * len(match[0]), text), maxsplit=1)[0]


def things_named(answer: str) -> tuple[str, ...]:
    """The things an answer lists, in order: rows of tables, bullets, else what is printed bold, else keys."""
    found: list[str] = []
    head: list[str] | None = None
    for line in answer.splitlines():
        if row := _ROW.match(line.strip()):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row[1])]
            if head is None:
                head = cells
            elif head[0] and not all(set(cell) <= set("-: ") for cell in cells):
                found.append(identity(dict(zip(head, cells, strict=False))) or cells[0])
            continue
        head = None
        if (bullet := _BULLET.match(line)) and not (bullet["bold"] or "").endswith(":"):
            found.append(next(group for group in bullet.groups() if group).strip())
    return tuple(dict.fromkeys(found or _BOLD.findall(answer) or _KEY.findall(answer)))


def subject_of(question: str) -> str:
    """What a question is about, without its verb: "list my Jira tickets" is about "my Jira tickets"."""
    text = re.split(r"\b(?:is|are|was|were|has|have|do|does|that|with)\b", question.strip(" ?.!"), maxsplit=1)[0]
    kept = text.split()
    leading = READ_VERBS | QUESTION_WORDS | {"please", "me", "the", "all", "of", "you", "could", "and"}
    while kept and kept[0].lower().strip(",") in leading:
        kept.pop(0)
    return " ".join(kept)


def resolve(text: str, before: Before) -> str:
    """The text as a request that stands on its own."""
    if _AGAIN.match(text):
        return before.question
    if about := _ABOUT.match(text):
        return _asked_about(about["thing"], before)
    things = things_named(before.answer)
    thing = _meant(before, things)
    if _MORE.match(text):
        return f"show details of {thing}" if thing else before.question
    return _named(_CONTINUES.sub("", text), before, things, thing)


def _named(text: str, before: Before, things: Sequence[str], thing: str | None) -> str:
    """The text with what it points at put in place of the word that points."""
    plain = _undictated(text)
    if (ordinal := _ORDINAL.search(plain)) and things:
        position = _ORDINALS[ordinal["ordinal"].lower()]
        if -len(things) <= position < len(things):
            return _put(things[position], text, ordinal, ordinal["kind"])
    if plural := _PLURAL.search(plain):
        if meant := _all_meant(plural[0], before, things if requested_changes(text) else ()):
            return _put(meant, text, plural)
    elif (ones := _ONES.search(plain)) and (subject := subject_of(before.question)):
        return _put(f"the {ones['which']} {subject}", text, ones)
    elif thing and (part := _POSSESSIVE.search(plain)):
        return _put(f"the {part['part']} of {thing}", text, part)
    elif thing and (singular := _SINGULAR.search(plain)):
        return _put(thing, text, singular, singular["kind"])
    return text


def _all_meant(pronoun: str, before: Before, things: Sequence[str]) -> str:
    """All things that were talked about: each by name where they are to be changed, else by their kind."""
    if things:
        return f"{', '.join(things[:-1])} and {things[-1]}" if len(things) > 1 else things[0]
    # What was done to a thing is no kind of things.
    subject = "" if requested_changes(before.question) else subject_of(before.question)
    return subject and f"{'of ' if pronoun.lower().startswith(('of', 'all of')) else ''}the {subject}"


def _meant(before: Before, things: Sequence[str]) -> str | None:
    """The one thing that was talked about: the only one answered with, else one that was asked for, else the first."""
    if len(things) == 1:
        return things[0]
    return next(iter([*before.names, *things]), None)


def _put(thing: str, text: str, place: re.Match[str], kind: str | None = None) -> str:
    named = f"{thing} {kind}" if kind and kind.lower() not in {"one", "thing"} else thing
    return f"{text[: place.start()]}{named}{text[place.end() :]}"


def _asked_about(thing: str, before: Before) -> str:
    """The previous question, asked about another thing. A change is not repeated on a hint."""
    if requested_changes(before.question):
        return f"show {thing}"
    for name in before.names:
        if name in before.question:
            return before.question.replace(name, thing, 1)
    return f"{before.question.rstrip(' ?.!')} of {thing}"
