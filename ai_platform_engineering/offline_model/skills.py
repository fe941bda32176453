"""Skills that can be read: what the instructions say of them, and which one a request asks for.

A skill is used when a request calls it by its name, or orders the whole procedure that its description states.
Questions, and requests that tools serve on their own, never use one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ai_platform_engineering.offline_model import language
from ai_platform_engineering.offline_model.language import SYNONYM, best_similarity, is_about, similarity, stem
from ai_platform_engineering.offline_model.orders import Order, read_order, spoken_words
from ai_platform_engineering.offline_model.requests import Request, is_common, request_names
from ai_platform_engineering.offline_model.routing import named_agents
from ai_platform_engineering.offline_model.sentences import (
    QUOTED,
    clauses,
    is_question,
    leading_verb,
    requested_changes,
)
from ai_platform_engineering.offline_model.tools import Agent
from ai_platform_engineering.offline_model.vocabulary import (
    ASKING_VERBS,
    CHANGE_VERBS,
    DETERMINERS,
    STATES,
    word_set,
)

_NAME: Final = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_HEADING: Final = re.compile(r"^Skills are\b", re.M)
_LINE: Final = re.compile(rf"^- (?P<name>{_NAME}): (?P<description>.+)$", re.M)
_COMMAND: Final = re.compile(rf"^\s*/(?P<name>{_NAME})(?:\s+(?P<rest>.*))?$", re.I | re.S)
_SKILL: Final = re.compile(r"\bskills?\b", re.I)
_USES: Final = re.compile(r"\b(?:use|using|run|follow|apply|start|execute|perform|do|work\s+through|with)\b", re.I)
_ASKS_ABOUT: Final = re.compile(r"^\W*(?:what|which|who|how|why|when|where|list|show|describe|explain|tell)\b", re.I)
_PLACE: Final = re.compile(r"\s(?:for|of|on|in|about|with|to|at|from|regarding)\s+", re.I)
_SUBJECT_ENDS: Final = " \t\n.,;:!?"
_HEAD_ENDS: Final = re.compile(r"\s[-–—]\s|[.:;]\s")
_COMPOUND: Final = re.compile(r"\b\w+(?:[-/_.#]\w+)+")

_INVESTIGATING: Final = frozenset(
    map(stem, word_set("triage diagnose investigate troubleshoot debug analyse analyze examine"))
)
"""Verbs that ask for the same kind of work."""
_PRODUCING: Final = word_set(
    "prepare write draft compile produce do run perform make create conduct start execute need"
)
"""Verbs that say nothing without their object: "write the release notes"."""
_EVERYDAY: Final = frozenset(map(stem, word_set("review request check note notes report plan change update lookup")))
"""Words that are part of many names, and alone name no procedure."""
_ORDINARY_VERBS: Final = frozenset(map(stem, ASKING_VERBS | CHANGE_VERBS))


@dataclass(frozen=True, slots=True)
class DescribedSkill:
    """One line of the section on skills."""

    name: str
    description: str

    @property
    def words(self) -> tuple[str, ...]:
        """Stems of its name."""
        return language.stems(language.spaced(self.name))

    @property
    def head(self) -> str:
        """What it does, without what it looks at and when to use it: "Triage an incident of a service"."""
        return _HEAD_ENDS.split(self.description, maxsplit=1)[0]

    @property
    def verb(self) -> str:
        """Stem of the verb that its description begins with."""
        return next(iter(language.stems(self.head)), "")

    @property
    def nouns(self) -> frozenset[str]:
        """Stems for what it is about: the words of its name, and the object of its description's verb."""
        order = read_order(spoken_words(self.head))
        about = " ".join(order.about) if order else ""
        return frozenset([*self.words, *language.terms(about)]) - {self.verb}


@dataclass(frozen=True, slots=True)
class WantedSkill:
    """A skill that a request asks for, and what it is to be used for."""

    name: str
    arguments: str = ""


def described_skills(text: str) -> tuple[DescribedSkill, ...]:
    """The skills of instructions, in the section that begins with "Skills are"."""
    heading = _HEADING.search(text)
    return listed_skills(text[heading.start() :].split("\n\n", 1)[0]) if heading else ()


@lru_cache(maxsize=64)
def listed_skills(text: str) -> tuple[DescribedSkill, ...]:
    """The skills of lines such as `- incident-triage: Triage an incident`."""
    return tuple(DescribedSkill(line["name"], line["description"].strip()) for line in _LINE.finditer(text))


def speaks_of_skills(text: str) -> bool:
    """Whether a text speaks of skills itself, and not only what is to be written into a ticket."""
    if _COMMAND.match(text):
        return True
    spoken = _SKILL.search(QUOTED.sub(lambda quoted: " " * len(quoted[0]), text))
    return spoken is not None and not _is_written_down(text, _USES.search(text, 0, spoken.start()) or spoken)


def asks_about_skills(text: str) -> bool:
    """Whether a text asks which skills there are, rather than for the work of one."""
    return bool(re.search(r"\bskills\b", text, re.I)) and bool(_ASKS_ABOUT.match(text))


def asks_for_a_skill(text: str) -> bool:
    """Whether a text asks to use a skill, whichever it names."""
    return bool(_SKILL.search(text)) and bool(_USES.search(text)) and not _ASKS_ABOUT.match(text)


@lru_cache(maxsize=512)
def named_skill(text: str, skills: tuple[DescribedSkill, ...], known: frozenset[str]) -> WantedSkill | None:
    """The skill that a request calls by its name. `known` are stems that name no particular thing."""
    if command := _COMMAND.match(text):
        by_name = {skill.name for skill in skills}
        name = command["name"].lower()
        return WantedSkill(name, (command["rest"] or "").strip()) if name in by_name else None
    if _ASKS_ABOUT.match(text):
        return None
    others = other_orders(text)
    for skill in sorted(skills, key=lambda each: -len(each.name)):
        call = _call(text, skill.name)
        if call and not _is_written_down(text, call):
            after = text[call.end() : text.find(others[0], call.end()) if others else len(text)]
            after = re.sub(r"\W*\b(?:and(?:\s+then)?|then)\s*$", "", after).strip(_SUBJECT_ENDS)
            return WantedSkill(skill.name, _subject(after, known) or _only_name(text[: call.start()], known))
    return None


def other_orders(text: str) -> tuple[str, ...]:
    """What a request orders after its first clause."""
    return tuple(clause for clause in clauses(text)[1:] if leading_verb(clause) is not None)


@lru_cache(maxsize=512)
def described_skill(
    text: str, skills: tuple[DescribedSkill, ...], known: frozenset[str], agents: tuple[Agent, ...] = ()
) -> WantedSkill | None:
    """The skill whose description is what a request orders, and orders alone."""
    first, *rest = clauses(text) or ("",)
    if any(leading_verb(clause) is not None or is_question(clause) for clause in rest):
        return None
    if re.search(r"\bworkflows?\b", text, re.I):
        return None
    order = read_order(spoken_words(first))
    if order is None or order.verb in ASKING_VERBS:
        return None
    found = [
        (score, skill)
        for skill in skills
        if _concerns(first, skill, agents)
        for score in _scores(order, skill, skills, known)
    ]
    best = max((score for score, _ in found), default=0)
    fitting = [skill for score, skill in found if score == best]
    if len(fitting) != 1:
        return None
    return WantedSkill(fitting[0].name, _ordered_subject(text, order, known | fitting[0].nouns))


def search_words(text: str) -> str:
    """What to search the skills for: the words of a request that do not only say that a skill is wanted."""
    if command := _COMMAND.match(text):
        return command["name"]
    plain = _SKILL.sub(" ", text)
    spoken = [word for word in language.words(plain) if not language.is_stop_word(word) and not _USES.fullmatch(word)]
    return " ".join(spoken) or plain.strip()


def _is_written_down(text: str, place: re.Match[str]) -> bool:
    """Whether the place belongs to a change that the text asks for before it, such as the text of a comment."""
    return bool(requested_changes(text[: place.start()]))


def _call(text: str, name: str) -> re.Match[str] | None:
    """Where a text calls a skill: "the incident triage skill", "skill incident-triage", "run incident-triage"."""
    spelled = r"[\s_-]+".join(map(re.escape, name.split("-")))
    quote = r"[`'\"“”‘’]?"
    verb = _USES.pattern
    patterns = [
        rf"{verb}[^.?!\n]*?{quote}\b{spelled}\b{quote}\s+skill\b",
        rf"{verb}[^.?!\n]*?\bskill\s+(?:called\s+|named\s+)?{quote}{spelled}\b{quote}",
    ]
    if "-" in name:
        patterns.append(rf"^\W*(?:\w+\s+){{0,3}}?{verb}\s+(?:(?:the|an?)\s+)?{quote}{re.escape(name)}\b{quote}")
    matches = (re.search(pattern, text, re.I) for pattern in patterns)
    return next((match for match in matches if match), None)


def _subject(after: str, known: frozenset[str]) -> str:
    """What follows the name of a skill, as its arguments: the one thing that it names, else all of it."""
    rest = re.sub(r"^(?:for|of|on|in|about|with|to|at|regarding|please)\s+", "", after, flags=re.I)
    rest = re.sub(r"\s*\b(?:please|now|thanks)\b\W*$", "", rest, flags=re.I).strip(_SUBJECT_ENDS)
    if rest.lower() in DETERMINERS | {"please", "now"}:
        return ""
    names = request_names(Request(rest, known))
    return names[0] if len(names) == 1 else rest


def _only_name(text: str, known: frozenset[str]) -> str:
    names = request_names(Request(_USES.sub(" ", text), known))
    return names[0] if len(names) == 1 else ""


def _ordered_subject(text: str, order: Order, known: frozenset[str]) -> str:
    """What an order is for: what follows its object, or the name of a thing in it."""
    start = re.search(rf"\b{re.escape(order.verb)}\w*", language.joined(text), re.I)
    said = language.joined(text)[start.end() :] if start else text
    place = _PLACE.search(said)
    after = said[place.end() :].strip(_SUBJECT_ENDS) if place else ""
    names = request_names(Request(said, known))
    if len(names) == 1:
        return names[0]
    return _subject(after, known) if after and names else ""


def _concerns(text: str, skill: DescribedSkill, agents: Sequence[Agent]) -> bool:
    """Whether the skill speaks of all agents that the request names."""
    spoken = language.description_terms(skill.description) | set(skill.words)
    named = named_agents(_COMPOUND.sub(" ", QUOTED.sub(" ", text)), agents)
    return all(stem(re.sub(r"[_-]", "", agent.name)) in spoken for agent in named)


def _scores(
    order: Order, skill: DescribedSkill, skills: Sequence[DescribedSkill], known: frozenset[str]
) -> Iterator[int]:
    """How many words of an order are the skill's, where it orders the skill's work."""
    spoken = [stem(word) for part in order.about for word in language.words(part)]
    if order.verb in _PRODUCING:
        covered = all(best_similarity(word, spoken) > 0 for word in skill.words)
        if covered:
            yield len(skill.words) + 1
        elif _produces(order, skill, skills, known):
            yield 1
        return
    verb = stem(order.verb)
    kinds = _kinds(order, known | skill.nouns)
    matching = [word for word in kinds if best_similarity(stem(word), skill.nouns) >= SYNONYM]
    if kinds:
        if _is_done_by(verb, skill) and kinds[-1] in matching and _is_of_number(kinds[-1], verb, skill):
            yield 1 + len(matching)
    elif order.about and _is_name_of(verb, skill):
        yield 1


def _kinds(order: Order, known: frozenset[str]) -> list[str]:
    """Words that say what kind of thing is meant, rather than which one, or in which state. In "a developer" a strange
    word does too."""
    words = [word for word in order.about if word.lower() not in STATES and not language.is_stop_word(word)]
    kinds = [word for word in words if is_common(word, known)]
    return kinds or [word for word in words[-1:] if order.determiners and word.isalpha()]


def _is_done_by(verb: str, skill: DescribedSkill) -> bool:
    if verb in _INVESTIGATING and skill.verb in _INVESTIGATING:
        return True
    return similarity(verb, skill.verb) >= SYNONYM or _is_name_of(verb, skill)


def _is_name_of(verb: str, skill: DescribedSkill) -> bool:
    """Whether a verb is the work that a skill is named after, and no other: the triage of `incident-triage`."""
    return verb == skill.words[-1] and verb not in _EVERYDAY | _ORDINARY_VERBS


def _is_of_number(kind: str, verb: str, skill: DescribedSkill) -> bool:
    """Whether one thing or several are meant, as in the skill: to analyze the incidents is no triage of an incident."""
    if verb in {skill.verb, skill.words[-1]} or not language.is_plural(kind):
        return True
    return any(language.is_plural(word) for word in language.words(skill.head) if stem(word) == stem(kind))


def _produces(order: Order, skill: DescribedSkill, skills: Sequence[DescribedSkill], known: frozenset[str]) -> bool:
    """Whether a skill writes what is ordered, by a word that no agent and no other skill has: "the handover"."""
    if not order.about or skill.verb not in set(map(stem, _PRODUCING)):
        return False
    product = stem(order.about[-1])
    others = frozenset().union(*(other.nouns for other in skills if other != skill))
    return product in skill.nouns - _EVERYDAY and not is_about(product, known | others)
