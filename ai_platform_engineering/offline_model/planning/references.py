"""References: resolve pronouns, ordinals and follow-ups like "what about X?" with the previous exchange."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.english.sentences import QUOTED, requested_changes
from ai_platform_engineering.offline_model.english.vocabulary import QUESTION_WORDS, READ_VERBS
from ai_platform_engineering.offline_model.results.parsing import identity

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
class PreviousExchange:
    """The exchange that a text refers to: the question, its answer, and the names in the question."""

    question: str
    answer: str
    names: Sequence[str] = ()


def without_context(question: str) -> str:
    """The request without the context that the supervisor added to a delegation."""
    return question.split(CONTEXT, 1)[0].strip()


def refers_back(text: str) -> bool:
    visible = _without_dictation(text)
    return any(
        pattern.search(visible)
        for pattern in (_PLURAL, _ONES, _POSSESSIVE, _SINGULAR, _ORDINAL, _CONTINUES, _ABOUT, _MORE, _AGAIN)
    )


def asks_for_more(text: str) -> bool:
    """Whether the text only asks for a repetition or for more details."""
    return bool(_MORE.match(text) or _AGAIN.match(text))


def has_pronoun(text: str) -> bool:
    visible = _without_dictation(text)
    return any(pattern.search(visible) for pattern in (_PLURAL, _POSSESSIVE, _SINGULAR))


def _without_dictation(text: str) -> str:
    """The text with quotes hidden and up to dictated text: pronouns in those are no references."""
    return re.split(r"(?<=\w):\s", QUOTED.sub(lambda match: "." * len(match[0]), text), maxsplit=1)[0]


def things_named(answer: str) -> tuple[str, ...]:
    """The things that an answer lists, in order: table rows and bullets, else bold text, else ticket keys."""
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
    """The subject of a question without its verb: "my Jira tickets" for "list my Jira tickets"."""
    text = re.split(r"\b(?:is|are|was|were|has|have|do|does|that|with)\b", question.strip(" ?.!"), maxsplit=1)[0]
    words = text.split()
    leading = READ_VERBS | QUESTION_WORDS | {"please", "me", "the", "all", "of", "you", "could", "and"}
    while words and words[0].lower().strip(",") in leading:
        words.pop(0)
    return " ".join(words)


def resolve(text: str, before: PreviousExchange) -> str:
    """The text as a self-contained request."""
    if _AGAIN.match(text):
        return before.question
    if about := _ABOUT.match(text):
        return _asked_about_other(about["thing"], before)
    things = things_named(before.answer)
    thing = _singular_target(before, things)
    if _MORE.match(text):
        return f"show details of {thing}" if thing else before.question
    return _with_reference_replaced(_CONTINUES.sub("", text), before, things, thing)


def _with_reference_replaced(text: str, before: PreviousExchange, things: Sequence[str], thing: str | None) -> str:
    """The text with its first reference replaced by the thing it refers to."""
    visible = _without_dictation(text)
    if (ordinal := _ORDINAL.search(visible)) and things:
        position = _ORDINALS[ordinal["ordinal"].lower()]
        if -len(things) <= position < len(things):
            return _replaced(things[position], text, ordinal, ordinal["kind"])
    if plural := _PLURAL.search(visible):
        if target := _plural_target(plural[0], before, things if requested_changes(text) else ()):
            return _replaced(target, text, plural)
    elif (ones := _ONES.search(visible)) and (subject := subject_of(before.question)):
        return _replaced(f"the {ones['which']} {subject}", text, ones)
    elif thing and (part := _POSSESSIVE.search(visible)):
        return _replaced(f"the {part['part']} of {thing}", text, part)
    elif thing and (singular := _SINGULAR.search(visible)):
        return _replaced(thing, text, singular, singular["kind"])
    return text


def _plural_target(pronoun: str, before: PreviousExchange, things: Sequence[str]) -> str:
    """The things that a plural refers to: by name if they are to be changed, else by the subject of the question."""
    if things:
        return f"{', '.join(things[:-1])} and {things[-1]}" if len(things) > 1 else things[0]
    # The subject of a change is a single thing, not a kind of things.
    subject = "" if requested_changes(before.question) else subject_of(before.question)
    return subject and f"{'of ' if pronoun.lower().startswith(('of', 'all of')) else ''}the {subject}"


def _singular_target(before: PreviousExchange, things: Sequence[str]) -> str | None:
    """The thing that a singular refers to: the only one in the answer, else one in the question, else the first."""
    if len(things) == 1:
        return things[0]
    return next(iter([*before.names, *things]), None)


def _replaced(thing: str, text: str, place: re.Match[str], kind: str | None = None) -> str:
    named = f"{thing} {kind}" if kind and kind.lower() not in {"one", "thing"} else thing
    return f"{text[: place.start()]}{named}{text[place.end() :]}"


def _asked_about_other(thing: str, before: PreviousExchange) -> str:
    """The previous question for another thing. A change is not repeated on such a hint."""
    if requested_changes(before.question):
        return f"show {thing}"
    for name in before.names:
        if name in before.question:
            return before.question.replace(name, thing, 1)
    return f"{before.question.rstrip(' ?.!')} of {thing}"
