"""Workflows that the supervisor can start: what its instructions say of them, and which one a request asks for.

A workflow is started only when the request asks for just that to be done. Whatever else is said about the same things
is for the agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ai_platform_engineering.offline_model import language
from ai_platform_engineering.offline_model.language import SYNONYM, best_similarity, stem
from ai_platform_engineering.offline_model.orders import OBJECT_ENDS, Order, read_order, spoken_words
from ai_platform_engineering.offline_model.requests import is_common
from ai_platform_engineering.offline_model.routing import named_agents, vocabulary
from ai_platform_engineering.offline_model.sentences import QUOTED, clauses, is_question, leading_verb
from ai_platform_engineering.offline_model.tools import Agent
from ai_platform_engineering.offline_model.values import shaped
from ai_platform_engineering.offline_model.vocabulary import (
    CARRIER_VERBS,
    CHANGE_VERBS,
    CREATE_VERBS,
    DETERMINERS,
    POLITE,
    STATES,
    word_set,
)

_HEADING = re.compile(r"^\W*Workflows\b")
_LINE = re.compile(
    r"^- (?P<name>[a-z][a-z0-9_]*): (?P<title>.+?)(?:\.(?: (?P<description>.*?))?)?"
    r"(?: \((?P<facts>(?:keywords|inputs): [^()]*)\))?$"
)
_COMPOUND = re.compile(r"\b\w+(?:[-/_.#]\w+)+")
_INDEFINITE = word_set("a an new another")
_GENERIC = frozenset(map(stem, CREATE_VERBS | CARRIER_VERBS))
"""Verbs that say nothing without what they are about: everything can be created."""
_STARTING = CARRIER_VERBS | {"launch", "begin", "use"}
_BY_TITLE = 100


@dataclass(frozen=True, slots=True)
class Workflow:
    """One line of the section on workflows."""

    name: str
    title: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    @property
    def vocabulary(self) -> frozenset[str]:
        """Stems of its title and its keywords."""
        return frozenset(language.terms(self.title)).union(*map(language.terms, self.keywords))

    @property
    def nouns(self) -> frozenset[str]:
        """Stems for what it is about: not the first word of its title, which says what it does, and no verbs."""
        return self.vocabulary - {*language.stems(self.title)[:1], *self.verbs}

    @property
    def verbs(self) -> frozenset[str]:
        """Stems of the verbs among its keywords."""
        return frozenset(stem(word) for word in language.words(" ".join(self.keywords)) if word in CHANGE_VERBS)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A workflow that a request asks for, and the words for what it is to be done to."""

    workflow: Workflow
    text: str
    about: tuple[str, ...]
    indefinite: bool = False
    """It is about a new thing or any, as in "a service": a word before the kind does not name it."""


@lru_cache(maxsize=64)
def described_workflows(instructions: str) -> tuple[Workflow, ...]:
    """The workflows of the section that begins with a line `Workflows ...`."""
    lines = iter(instructions.splitlines())
    if not any(_HEADING.match(line) for line in lines):
        return ()
    found: list[Workflow] = []
    for line in lines:
        if match := _LINE.match(line.rstrip()):
            facts = dict(part.partition(": ")[::2] for part in (match["facts"] or "").split("; ") if part)
            found.append(
                Workflow(
                    match["name"],
                    match["title"],
                    match["description"] or "",
                    _listed(facts.get("keywords", "")),
                    _listed(facts.get("inputs", "")),
                )
            )
        elif found:
            break
    return tuple(found)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@lru_cache(maxsize=512)
def wanted_workflow(text: str, workflows: tuple[Workflow, ...], agents: tuple[Agent, ...]) -> Wanted | None:
    """The workflow that a request asks for, and asks for alone."""
    first, *rest = clauses(text) or ("",)
    if any(leading_verb(clause) is not None or is_question(clause) for clause in rest):
        return None
    spoken = spoken_words(first)
    found = [
        (score, Wanted(item, text, order.about, bool(order.determiners & _INDEFINITE)))
        for item in workflows
        if _concerns(first, item, agents)
        for score, order in _fits(spoken, item, vocabulary(agents))
    ]
    best = max((score for score, _ in found), default=0)
    fitting = [wanted for score, wanted in found if score == best]
    return fitting[0] if len(fitting) == 1 else None


def _concerns(text: str, workflow: Workflow, agents: Sequence[Agent]) -> bool:
    """Whether all agents that the request names have to do with the workflow."""
    known = workflow.vocabulary | language.description_terms(f"{workflow.title}. {workflow.description}")
    named = named_agents(_COMPOUND.sub(" ", QUOTED.sub(" ", text)), agents)
    return all(stem(re.sub(r"[_-]", "", agent.name)) in known for agent in named)


def _fits(spoken: tuple[str, ...], workflow: Workflow, known: frozenset[str]) -> Iterator[tuple[int, Order]]:
    """How many words of the request are the workflow's, where it asks for the workflow."""
    order = read_order(spoken)
    if order is None:
        return
    if by_name := _by_name(spoken, order, workflow):
        yield by_name
        return
    kinds = _kinds(order, known | workflow.vocabulary)
    matching = [word for word in kinds if best_similarity(stem(word), workflow.nouns) >= SYNONYM]
    if not _is_done_by(order.verb, workflow, known) or (kinds and kinds[-1] not in matching):
        return
    if kinds or stem(order.verb) not in _GENERIC:
        yield 1 + len(matching), order


def _by_name(spoken: tuple[str, ...], order: Order, workflow: Workflow) -> tuple[int, Order] | None:
    """An order that calls the workflow by its title, or as "the onboarding workflow"."""
    text = " ".join(spoken)
    if order.verb not in _STARTING:
        return None
    lower = [word.lower() for word in spoken]
    titled = language.contains_phrase(text, language.stems(workflow.title))
    if "workflow" not in lower:
        return (_BY_TITLE, Order(order.verb, ())) if titled else None
    end = lower.index("workflow")
    called = [word for word in lower[:end] if language.is_about(stem(word), workflow.vocabulary)]
    if not called:
        return None
    about = tuple(word for word in spoken[end + 1 :] if word.lower() not in OBJECT_ENDS | DETERMINERS | POLITE)
    return (_BY_TITLE if titled else len(called)), Order(order.verb, about)


def _kinds(order: Order, known: frozenset[str]) -> list[str]:
    """Words that say what kind of thing is meant, rather than which one. In "the database" a strange word does too."""
    words = [word for word in order.about if word.lower() not in STATES]
    kinds = [word for word in words if is_common(word, known)]
    if next(shaped("key", " ".join(words)), None):
        kinds.append("ticket")
    if not kinds and order.determiners:
        kinds = [word for word in words[-1:] if word.isalpha()]
    return kinds


def _is_done_by(verb: str, workflow: Workflow, known: frozenset[str]) -> bool:
    """Whether a verb is what the workflow does: a word of its title that is no everyday noun, or a verb among its
    keywords."""
    first, *others = language.stems(workflow.title)
    verbs = {first, *(word for word in others if word not in known), *workflow.verbs}
    return best_similarity(stem(verb), verbs) > 0
