"""The skills listed in the instructions, and which one a request asks for.

A skill is used if a request names it, or asks for the whole procedure of its description. Questions, and requests that
a single tool serves, never use a skill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.imperatives import Imperative, parse_imperative, spoken_words
from ai_platform_engineering.offline_model.english.lexical import SYNONYM, best_similarity, is_about, similarity, stem
from ai_platform_engineering.offline_model.english.requests import RequestText, is_common, request_names
from ai_platform_engineering.offline_model.english.sentences import (
    QUOTED,
    clauses,
    is_question,
    leading_verb,
    requested_changes,
)
from ai_platform_engineering.offline_model.english.vocabulary import (
    ASKING_VERBS,
    CHANGE_VERBS,
    DETERMINERS,
    STATES,
    word_set,
)
from ai_platform_engineering.offline_model.messages.tools import Agent
from ai_platform_engineering.offline_model.planning.routing import named_agents

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
"""Verbs of investigation, treated as synonyms."""
_PRODUCING: Final = word_set(
    "prepare write draft compile produce do run perform make create conduct start execute need"
)
"""Verbs that are meaningful only with their object: "write the release notes"."""
_EVERYDAY: Final = frozenset(map(stem, word_set("review request check note notes report plan change update lookup")))
"""Words that are part of many skill names and do not identify a skill."""
_ORDINARY_VERBS: Final = frozenset(map(stem, ASKING_VERBS | CHANGE_VERBS))


@dataclass(frozen=True, slots=True)
class DescribedSkill:
    """One line of the instructions' section on skills."""

    name: str
    description: str

    @property
    def words(self) -> tuple[str, ...]:
        """Stems of its name."""
        return lexical.stems(lexical.spaced(self.name))

    @property
    def head(self) -> str:
        """The first phrase of the description: "Triage an incident of a service"."""
        return _HEAD_ENDS.split(self.description, maxsplit=1)[0]

    @property
    def verb(self) -> str:
        """Stem of the first word of the description, a verb."""
        return next(iter(lexical.stems(self.head)), "")

    @property
    def nouns(self) -> frozenset[str]:
        """Stems of its subject: the words of its name, and the object of its description's verb."""
        imperative = parse_imperative(spoken_words(self.head))
        about = " ".join(imperative.about) if imperative else ""
        return frozenset([*self.words, *lexical.terms(about)]) - {self.verb}


@dataclass(frozen=True, slots=True)
class SkillRequest:
    """A skill that a request asks for, with its subject as arguments."""

    name: str
    arguments: str = ""


def described_skills(text: str) -> tuple[DescribedSkill, ...]:
    """The skills in the section of the instructions that begins with "Skills are"."""
    heading = _HEADING.search(text)
    return listed_skills(text[heading.start() :].split("\n\n", 1)[0]) if heading else ()


@lru_cache(maxsize=64)
def listed_skills(text: str) -> tuple[DescribedSkill, ...]:
    """The skills in lines like `- incident-triage: Triage an incident`."""
    return tuple(DescribedSkill(line["name"], line["description"].strip()) for line in _LINE.finditer(text))


def mentions_skills(text: str) -> bool:
    """Whether a text refers to skills, outside of quotes and of dictated text like that of a ticket."""
    if _COMMAND.match(text):
        return True
    spoken = _SKILL.search(QUOTED.sub(lambda quoted: " " * len(quoted[0]), text))
    return spoken is not None and not _is_dictated(text, _USES.search(text, 0, spoken.start()) or spoken)


def asks_about_skills(text: str) -> bool:
    """Whether a text asks which skills exist."""
    return bool(re.search(r"\bskills\b", text, re.I)) and bool(_ASKS_ABOUT.match(text))


def asks_for_a_skill(text: str) -> bool:
    """Whether a text asks to use a skill, known or unknown."""
    return bool(_SKILL.search(text)) and bool(_USES.search(text)) and not _ASKS_ABOUT.match(text)


@lru_cache(maxsize=512)
def named_skill(text: str, skills: tuple[DescribedSkill, ...], known: frozenset[str]) -> SkillRequest | None:
    """The skill that a request names. `known` are stems that are not names of things."""
    if command := _COMMAND.match(text):
        by_name = {skill.name for skill in skills}
        name = command["name"].lower()
        return SkillRequest(name, (command["rest"] or "").strip()) if name in by_name else None
    if _ASKS_ABOUT.match(text):
        return None
    others = further_requests(text)
    for skill in sorted(skills, key=lambda each: -len(each.name)):
        call = _name_match(text, skill.name)
        if call and not _is_dictated(text, call):
            after = text[call.end() : text.find(others[0], call.end()) if others else len(text)]
            after = re.sub(r"\W*\b(?:and(?:\s+then)?|then)\s*$", "", after).strip(_SUBJECT_ENDS)
            return SkillRequest(skill.name, _subject(after, known) or _only_name(text[: call.start()], known))
    return None


def further_requests(text: str) -> tuple[str, ...]:
    """The further requests after the first clause."""
    return tuple(clause for clause in clauses(text)[1:] if leading_verb(clause) is not None)


@lru_cache(maxsize=512)
def described_skill(
    text: str, skills: tuple[DescribedSkill, ...], known: frozenset[str], agents: tuple[Agent, ...] = ()
) -> SkillRequest | None:
    """The skill whose description matches a request; None if it asks for anything else as well."""
    first, *rest = clauses(text) or ("",)
    if any(leading_verb(clause) is not None or is_question(clause) for clause in rest):
        return None
    if re.search(r"\bworkflows?\b", text, re.I):
        return None
    imperative = parse_imperative(spoken_words(first))
    if imperative is None or imperative.verb in ASKING_VERBS:
        return None
    found = [
        (score, skill)
        for skill in skills
        if _concerns(first, skill, agents)
        for score in _scores(imperative, skill, skills, known)
    ]
    best = max((score for score, _ in found), default=0)
    fitting = [skill for score, skill in found if score == best]
    if len(fitting) != 1:
        return None
    return SkillRequest(fitting[0].name, _ordered_subject(text, imperative, known | fitting[0].nouns))


def search_words(text: str) -> str:
    """The query for a search of skills: the words of a request without those like "use the skill"."""
    if command := _COMMAND.match(text):
        return command["name"]
    plain = _SKILL.sub(" ", text)
    spoken = [word for word in lexical.words(plain) if not lexical.is_stop_word(word) and not _USES.fullmatch(word)]
    return " ".join(spoken) or plain.strip()


def _is_dictated(text: str, place: re.Match[str]) -> bool:
    """Whether a match comes after a requested change, and is therefore dictated text, for example of a comment."""
    return bool(requested_changes(text[: place.start()]))


def _name_match(text: str, name: str) -> re.Match[str] | None:
    """The match of a skill's name: "the incident triage skill", "skill incident-triage", "run incident-triage"."""
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
    """The arguments after the name of a skill: the only name in the text, else all of it."""
    rest = re.sub(r"^(?:for|of|on|in|about|with|to|at|regarding|please)\s+", "", after, flags=re.I)
    rest = re.sub(r"\s*\b(?:please|now|thanks)\b\W*$", "", rest, flags=re.I).strip(_SUBJECT_ENDS)
    if rest.lower() in DETERMINERS | {"please", "now"}:
        return ""
    names = request_names(RequestText(rest, known))
    return names[0] if len(names) == 1 else rest


def _only_name(text: str, known: frozenset[str]) -> str:
    names = request_names(RequestText(_USES.sub(" ", text), known))
    return names[0] if len(names) == 1 else ""


def _ordered_subject(text: str, imperative: Imperative, known: frozenset[str]) -> str:
    """The subject of a request: the only name in it, else the text after a preposition."""
    start = re.search(rf"\b{re.escape(imperative.verb)}\w*", lexical.joined(text), re.I)
    after_verb = lexical.joined(text)[start.end() :] if start else text
    place = _PLACE.search(after_verb)
    after = after_verb[place.end() :].strip(_SUBJECT_ENDS) if place else ""
    names = request_names(RequestText(after_verb, known))
    if len(names) == 1:
        return names[0]
    return _subject(after, known) if after and names else ""


def _concerns(text: str, skill: DescribedSkill, agents: Sequence[Agent]) -> bool:
    """Whether the skill mentions all agents that the request names."""
    spoken = lexical.description_terms(skill.description) | set(skill.words)
    named = named_agents(_COMPOUND.sub(" ", QUOTED.sub(" ", text)), agents)
    return all(stem(re.sub(r"[_-]", "", agent.name)) in spoken for agent in named)


def _scores(
    imperative: Imperative, skill: DescribedSkill, skills: Sequence[DescribedSkill], known: frozenset[str]
) -> Iterator[int]:
    """The score of a request that asks for the skill: the number of matching words. Empty if it does not."""
    spoken = [stem(word) for part in imperative.about for word in lexical.words(part)]
    if imperative.verb in _PRODUCING:
        covered = all(best_similarity(word, spoken) > 0 for word in skill.words)
        if covered:
            yield len(skill.words) + 1
        elif _produces(imperative, skill, skills, known):
            yield 1
        return
    verb = stem(imperative.verb)
    nouns = _nouns(imperative, known | skill.nouns)
    matching = [word for word in nouns if best_similarity(stem(word), skill.nouns) >= SYNONYM]
    if nouns:
        if _is_done_by(verb, skill) and nouns[-1] in matching and _is_of_number(nouns[-1], verb, skill):
            yield 1 + len(matching)
    elif imperative.about and _is_name_of(verb, skill):
        yield 1


def _nouns(imperative: Imperative, known: frozenset[str]) -> list[str]:
    """The nouns of an imperative's object, without names and states. After an article, unknown words are nouns too."""
    words = [word for word in imperative.about if word.lower() not in STATES and not lexical.is_stop_word(word)]
    nouns = [word for word in words if is_common(word, known)]
    return nouns or [word for word in words[-1:] if imperative.determiners and word.isalpha()]


def _is_done_by(verb: str, skill: DescribedSkill) -> bool:
    if verb in _INVESTIGATING and skill.verb in _INVESTIGATING:
        return True
    return similarity(verb, skill.verb) >= SYNONYM or _is_name_of(verb, skill)


def _is_name_of(verb: str, skill: DescribedSkill) -> bool:
    """Whether a skill is named after a specific verb: "triage" of `incident-triage`."""
    return verb == skill.words[-1] and verb not in _EVERYDAY | _ORDINARY_VERBS


def _is_of_number(noun: str, verb: str, skill: DescribedSkill) -> bool:
    """Whether singular or plural match the skill: "analyze the incidents" is no triage of an incident."""
    if verb in {skill.verb, skill.words[-1]} or not lexical.is_plural(noun):
        return True
    return any(lexical.is_plural(word) for word in lexical.words(skill.head) if stem(word) == stem(noun))


def _produces(
    imperative: Imperative, skill: DescribedSkill, skills: Sequence[DescribedSkill], known: frozenset[str]
) -> bool:
    """Whether a skill produces the requested object, by a word that only this skill has: "the handover"."""
    if not imperative.about or skill.verb not in set(map(stem, _PRODUCING)):
        return False
    product = stem(imperative.about[-1])
    others = frozenset().union(*(other.nouns for other in skills if other != skill))
    return product in skill.nouns - _EVERYDAY and not is_about(product, known | others)
