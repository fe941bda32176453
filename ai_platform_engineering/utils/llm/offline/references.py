"""What a follow-up refers to: the thing, the kind of things, or the question of the exchange before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ai_platform_engineering.utils.llm.offline import language
from ai_platform_engineering.utils.llm.offline.conversation import Exchange

CONTEXT = "\n\nContext: "

_PLURAL = re.compile(r"\b(?:(?:of\s+)?(?:them|those|these)|they)\b", re.I)
_SINGULAR = re.compile(
    r"\b(?:(?:this|that)\s+one|the\s+same(?:\s+one)?|it|this|that)\b(?!['’]s)(?!\s+(?:is|are|was|app|issue)\b)", re.I
)
_ORDINAL = re.compile(r"\b(?:the\s+)?(first|second|third|fourth|fifth|last)(?:\s+ones?)?\b", re.I)
_CONTINUES = re.compile(r"^\W*(?:and|what\s+about|how\s+about|also|same\s+for|but)\b[\s,]*", re.I)
_ABOUT = re.compile(
    r"^\W*(?:(?:and|but)\s+)?(?:what|how)\s+about\s+(?P<thing>.+?)\W*$|^\W*(?:and\s+)?same\s+for\s+(?P<same>.+?)\W*$",
    re.I,
)
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}

_ENTITY = re.compile(
    r"^\s*(?:[-*]|\d+\.)\s+(?:\*\*)?`?(?P<bullet>[^\s*`:|][^*`:|\n]*?)`?(?:\*\*)?\s*(?=:|$|-\s|\()"
    r"|^\|\s*(?P<cell>[^|\n]+?)\s*\|",
    re.M,
)
_KEY = re.compile(r"\b[A-Z][A-Z0-9]+-\d+\b")


def without_context(question: str) -> str:
    """The request itself, without what the supervisor added for understanding it."""
    return question.split(CONTEXT, 1)[0].strip()


def refers_back(text: str) -> bool:
    return bool(_PLURAL.search(text) or _SINGULAR.search(text) or _ORDINAL.search(text) or _CONTINUES.search(text))


def things_named(answer: str) -> tuple[str, ...]:
    """The things an answer lists, in order: first cells of tables, heads of bullets, keys."""
    found: list[str] = []
    skip_head = True
    for match in _ENTITY.finditer(answer):
        if cell := match["cell"]:
            if set(cell) <= set("-: "):
                continue
            if skip_head:
                skip_head = False
                continue
            found.append(cell)
        elif bullet := match["bullet"]:
            found.append(bullet.strip())
    return tuple(dict.fromkeys(found or _KEY.findall(answer)))


def subject_of(question: str) -> str:
    """What a question is about, without its verb: "list my Jira tickets" is about "my Jira tickets"."""
    text = re.split(r"\b(?:is|are|was|were|has|have|do|does|that|with)\b", question.strip(" ?.!"), maxsplit=1)[0]
    kept = text.split()
    leading = (
        language.READ_VERBS | language.QUESTION_WORDS | {"please", "me", "the", "all", "of", "you", "could", "and"}
    )
    while kept and kept[0].lower().strip(",") in leading:
        kept.pop(0)
    return " ".join(kept)


def resolve(text: str, earlier: Sequence[Exchange], names: Sequence[str]) -> str:
    """The follow-up as a request that stands on its own. `names` are the things the previous question named."""
    if not earlier:
        return text
    previous = earlier[-1]
    things = things_named(previous.answer)
    if about := _ABOUT.match(text):
        return _asked_about(about["thing"] or about["same"], previous.question, names)
    resolved = _CONTINUES.sub("", text)
    if (ordinal := _ORDINAL.search(resolved)) and things:
        position = _ORDINALS[ordinal[1].lower()]
        if -len(things) <= position < len(things):
            return _ORDINAL.sub(things[position], resolved, count=1)
    if _PLURAL.search(resolved) and (subject := subject_of(previous.question)):
        return _PLURAL.sub(
            lambda match: f"of the {subject}" if match[0].lower().startswith("of") else f"the {subject}",
            resolved,
            count=1,
        )
    if _SINGULAR.search(resolved) and (thing := next(iter([*names, *things]), None)):
        return _SINGULAR.sub(thing, resolved, count=1)
    return resolved


def _asked_about(thing: str, question: str, names: Sequence[str]) -> str:
    """The previous question, asked about another thing."""
    for name in names:
        if name in question:
            return question.replace(name, thing, 1)
    return f"{question.rstrip(' ?.!')}: {thing}"
