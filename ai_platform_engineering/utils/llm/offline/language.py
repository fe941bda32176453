"""Words: tokens, light stems, the everyday vocabulary of operations, and where a sentence falls into parts.

Knows English and the trade, never a particular product: what an agent or a tool is called comes from its description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_PHRASES = (
    (re.compile(r"\bon[\s_-]*calls?\b", re.I), "oncall"),
    (re.compile(r"\broll(?:ed|ing|s)?[\s_-]+back\b", re.I), "rollback"),
    (re.compile(r"\bpull[\s_-]+requests?\b", re.I), "pullrequest"),
    (re.compile(r"\bmerge[\s_-]+requests?\b", re.I), "mergerequest"),
    (re.compile(r"\bPRs?\b"), "pullrequest"),
    (re.compile(r"\bMRs?\b"), "mergerequest"),
)

_SYNONYMS = (
    ("application", "app"),
    ("issue", "ticket", "bug"),
    ("repository", "repo"),
    ("pullrequest", "mergerequest"),
    ("incident", "alert", "outage"),
    ("certificate", "cert", "tls", "ssl"),
    ("kubernetes", "k8s"),
    ("environment", "env"),
    ("configuration", "config"),
    ("document", "doc"),
    ("schedule", "rota", "roster"),
    ("delete", "remove", "destroy"),
    ("create", "open", "file", "raise", "make", "add"),
    ("sync", "synchronise", "synchronize"),
    ("acknowledge", "ack"),
    ("rollback", "revert"),
    ("resolve", "close"),
    ("transition", "move"),
    ("degraded", "unhealthy", "broken", "failing", "failed", "down"),
)


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = word_set("""
    a about all also am an and any are as ask at be been being but by can could did do does each every for from give
    go had has have having hello help here hey hi how i if in into is it its just kindly latest let like me mine my
    need new no not now of off ok on one ones only or other our out over please really right s see should so some tell
    than thank thanks that the their them then there these they thing things this those to too up us very want was we
    were what when where which who whose why will with would yes you your current currently there's it's what's who's
    i'd i'm let's more most much many same way still again using use via part""")
"""Words that say nothing about what is asked for. Compared before stemming."""

LIST_VERBS = word_set("list search find query enumerate browse lookup look")
GET_VERBS = word_set("get show read describe fetch view display inspect check compare summarize summarise")
READ_VERBS = LIST_VERBS | GET_VERBS | word_set("give tell explain report count print know see watch")
CREATE_VERBS = word_set("create open file raise make add new")
CHANGE_VERBS = CREATE_VERBS | word_set("""
    acknowledge ack apply approve archive assign cancel change clear close comment delete deploy destroy disable
    drop edit enable execute fix grant install invite kill label link lock merge modify move patch pause post promote
    publish purge put reassign rebase rebuild reboot redeploy refresh reject release remove rename reopen replace
    reply rerun reset resize resolve restart restore resume retry revert revoke rollback rotate run save scale send
    set silence snooze start stop submit suspend sync synchronise synchronize terminate transition trigger unassign
    uninstall unlock update upgrade upload write""")

GENERAL_NOUNS = word_set("""
    status state health detail details info information overview summary version versions list result results
    problem problems name names number count today yesterday week month everything anything team first second third
    last next difference""")
"""Nouns that ask about a thing and never name one."""

QUESTION_WORDS = word_set("who what which when where why how whose is are does do did has have can")
_NEGATIONS = word_set("not don't dont don’t never without no")
_POLITE = word_set("""
    please kindly can could would will you i i'd we want need like to let's lets just go ahead and then also now ok
    okay hey hi hello help me us should must""")

_DERIVATIONS = ("ment", "ation", "ion", "er", "or", "ee", "ance", "ure", "al")


def _normalise(text: str) -> str:
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    return text


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A light stem: the same for singular and plural, and for the usual verb endings."""
    word = word.lower().replace("’", "'")
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and re.search(r"[aeiouy]", base):
            word = base[:-1] if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    if len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    return word


_GROUPS: dict[str, frozenset[str]] = {}
for _group in _SYNONYMS:
    _stems = frozenset(stem(_word) for _word in _group)
    for _stem in _stems:
        _GROUPS[_stem] = _GROUPS.get(_stem, frozenset()) | _stems
_STOP_STEMS = frozenset(stem(_word) for _word in STOP_WORDS)


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, lower case, trade phrases joined into one word."""
    return tuple(word.lower().replace("’", "'") for word in _WORD.findall(_normalise(text)))


@lru_cache(maxsize=4096)
def identifier_words(name: str) -> tuple[str, ...]:
    """The words inside an identifier: snake_case, kebab-case, camelCase."""
    return words(" ".join(_CAMEL.split(name.replace("_", " ").replace("-", " "))))


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """Stems of all words, in order, stop words included."""
    return tuple(stem(word) for word in words(text))


@lru_cache(maxsize=4096)
def terms(text: str) -> tuple[str, ...]:
    """Stems of the words that carry meaning, in order, each once."""
    return tuple(dict.fromkeys(stem(word) for word in words(text) if word not in STOP_WORDS))


def is_stop(word: str) -> bool:
    return word.lower() in STOP_WORDS or stem(word) in _STOP_STEMS


@lru_cache(maxsize=65536)
def similarity(one: str, other: str) -> float:
    """How much two stems mean the same: 1 for equal, less for a derivation or a synonym, 0 for nothing in common."""
    if one == other:
        return 1.0
    if one in _GROUPS.get(other, ()):
        return 0.8
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) >= 4 and longer.startswith(shorter) and longer[len(shorter) :] in _DERIVATIONS:
        return 0.7
    return 0.0


def best_similarity(term: str, vocabulary: Iterable[str]) -> float:
    return max((similarity(term, word) for word in vocabulary), default=0.0)


def contains_phrase(text: str, phrase: tuple[str, ...]) -> bool:
    """Whether the stems of `phrase` occur next to each other in the text."""
    haystack, size = stems(text), len(phrase)
    return size > 0 and any(haystack[start : start + size] == phrase for start in range(len(haystack) - size + 1))


def is_negated(text: str, phrase: tuple[str, ...]) -> bool:
    haystack, size = stems(text), len(phrase)
    return any(
        haystack[start : start + size] == phrase and _NEGATIONS.intersection(haystack[max(0, start - 2) : start])
        for start in range(len(haystack) - size + 1)
    )


def requested_changes(text: str) -> tuple[str, ...]:
    """Stems of the verbs with which the text asks for a change.

    A verb asks when it leads its clause, apart from politeness: "please sync it" does, "which are out of sync?" and
    "show the sync status" do not.
    """
    found: list[str] = []
    for clause in clauses(text):
        sequence = words(clause)
        if sequence and sequence[0] == "how":
            continue
        for word in sequence:
            if word in _NEGATIONS:
                break
            if word in _POLITE:
                continue
            if word in CHANGE_VERBS:
                found.append(stem(word))
            break
    return tuple(dict.fromkeys(found))


def leading_verb(text: str) -> str | None:
    """The verb a request starts with, apart from politeness, if it starts with one."""
    for word in words(text):
        if word in READ_VERBS or word in CHANGE_VERBS:
            return word
        if word not in _POLITE:
            return None
    return None


_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)")
_CUT = re.compile(
    r"(?P<end>(?<=[.?!;])\s+|\s*\n\s*|;\s*|,?\s+(?:and\s+then|then|and\s+also|as\s+well\s+as|plus)\s+)"
    r"|(?:,\s*and\s+|,\s+|\s+and\s+|\s+&\s+|\s+vs\.?\s+|\s+versus\s+)",
    re.I,
)
"""Where a text may fall apart: at `end` it does; elsewhere only if what follows asks for something of its own."""


def _opens_clause(part: str) -> bool:
    sequence = words(part)
    while sequence and sequence[0] in {"please", "also"}:
        sequence = sequence[1:]
    return bool(sequence) and (
        sequence[0] in QUESTION_WORDS
        or sequence[0] in READ_VERBS
        or (sequence[0] in CHANGE_VERBS and len(sequence) > 1)
    )


def _cuts(text: str) -> list[re.Match[str]]:
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    return [cut for cut in _CUT.finditer(text) if not any(start < cut.start() < end for start, end in quoted)]


@lru_cache(maxsize=2048)
def clauses(text: str) -> tuple[str, ...]:
    """The clauses of a text: parts that each ask for something of their own."""
    found: list[str] = []
    start = 0
    cuts = _cuts(text)
    ends = [cut.start() for cut in cuts[1:]] + [len(text)]
    for cut, end in zip(cuts, ends, strict=False):
        next_part = text[cut.end() : end]
        if cut["end"] is not None or _opens_clause(next_part):
            found.append(text[start : cut.start()])
            start = cut.end()
    found.append(text[start:])
    return tuple(part.strip() for part in found if words(part))


@lru_cache(maxsize=2048)
def members(text: str) -> tuple[str, ...]:
    """The members of an enumeration: "guestbook and checkout" has two."""
    found: list[str] = []
    start = 0
    for cut in _cuts(text):
        found.append(text[start : cut.start()])
        start = cut.end()
    found.append(text[start:])
    return tuple(part.strip() for part in found if part.strip())
