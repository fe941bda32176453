"""The workflows listed in the supervisor's instructions, and which one a request asks for.

A workflow is started only if the request asks for exactly that. Every other request about the same things goes to the
agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.imperatives import (
    OBJECT_ENDS,
    Imperative,
    parse_imperative,
    spoken_words,
)
from ai_platform_engineering.offline_model.english.lexical import SYNONYM, best_similarity, stem
from ai_platform_engineering.offline_model.english.requests import is_common
from ai_platform_engineering.offline_model.english.sentences import QUOTED, clauses, is_question, leading_verb
from ai_platform_engineering.offline_model.english.vocabulary import (
    CHANGE_VERBS,
    CREATE_VERBS,
    DETERMINERS,
    LIGHT_VERBS,
    POLITE,
    STATES,
    word_set,
)
from ai_platform_engineering.offline_model.messages.tools import Agent
from ai_platform_engineering.offline_model.planning.routing import named_agents, vocabulary
from ai_platform_engineering.offline_model.tool_calls.values import shaped

_HEADING = re.compile(r"^\W*Workflows\b")
_LINE = re.compile(
    r"^- (?P<name>[a-z][a-z0-9_]*): (?P<title>.+?)(?:\.(?: (?P<description>.*?))?)?"
    r"(?: \((?P<facts>(?:keywords|inputs): [^()]*)\))?$"
)
_COMPOUND = re.compile(r"\b\w+(?:[-/_.#]\w+)+")
_INDEFINITE = word_set("a an new another")
_GENERIC = frozenset(map(stem, CREATE_VERBS | LIGHT_VERBS))
"""Verbs that fit every workflow without their object, like "create"."""
_STARTING = LIGHT_VERBS | {"launch", "begin", "use"}
_TITLE_SCORE = 100


@dataclass(frozen=True, slots=True)
class DescribedWorkflow:
    """One line of the instructions' section on workflows."""

    name: str
    title: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    @property
    def vocabulary(self) -> frozenset[str]:
        """Stems of its title and its keywords."""
        return frozenset(lexical.terms(self.title)).union(*map(lexical.terms, self.keywords))

    @property
    def nouns(self) -> frozenset[str]:
        """Stems of its subject: its vocabulary without verbs and without the first word of the title, a verb."""
        return self.vocabulary - {*lexical.stems(self.title)[:1], *self.verbs}

    @property
    def verbs(self) -> frozenset[str]:
        """Stems of the verbs among its keywords."""
        return frozenset(stem(word) for word in lexical.words(" ".join(self.keywords)) if word in CHANGE_VERBS)


@dataclass(frozen=True, slots=True)
class WorkflowRequest:
    """A workflow that a request asks for, and the words of the request's object."""

    workflow: DescribedWorkflow
    text: str
    about: tuple[str, ...]
    indefinite: bool = False
    """Whether the object is a new or an unnamed thing, as in "a service": a word before its noun is no name."""


@lru_cache(maxsize=64)
def described_workflows(instructions: str) -> tuple[DescribedWorkflow, ...]:
    """The workflows in the section that begins with a line `Workflows ...`."""
    lines = iter(instructions.splitlines())
    if not any(_HEADING.match(line) for line in lines):
        return ()
    found: list[DescribedWorkflow] = []
    for line in lines:
        if match := _LINE.match(line.rstrip()):
            facts = dict(part.partition(": ")[::2] for part in (match["facts"] or "").split("; ") if part)
            found.append(
                DescribedWorkflow(
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
def wanted_workflow(
    text: str, workflows: tuple[DescribedWorkflow, ...], agents: tuple[Agent, ...]
) -> WorkflowRequest | None:
    """The workflow that a request asks for; None if it asks for anything else as well."""
    first, *rest = clauses(text) or ("",)
    if any(leading_verb(clause) is not None or is_question(clause) for clause in rest):
        return None
    spoken = spoken_words(first)
    found = [
        (score, WorkflowRequest(item, text, imperative.about, bool(imperative.determiners & _INDEFINITE)))
        for item in workflows
        if _concerns(first, item, agents)
        for score, imperative in _fits(spoken, item, vocabulary(agents))
    ]
    best = max((score for score, _ in found), default=0)
    fitting = [wanted for score, wanted in found if score == best]
    return fitting[0] if len(fitting) == 1 else None


def _concerns(text: str, workflow: DescribedWorkflow, agents: Sequence[Agent]) -> bool:
    """Whether the workflow mentions all agents that the request names."""
    known = workflow.vocabulary | lexical.description_terms(f"{workflow.title}. {workflow.description}")
    named = named_agents(_COMPOUND.sub(" ", QUOTED.sub(" ", text)), agents)
    return all(stem(re.sub(r"[_-]", "", agent.name)) in known for agent in named)


def _fits(
    spoken: tuple[str, ...], workflow: DescribedWorkflow, known: frozenset[str]
) -> Iterator[tuple[int, Imperative]]:
    """The score of a request that asks for the workflow (the number of matching words), with its imperative."""
    imperative = parse_imperative(spoken)
    if imperative is None:
        return
    if by_name := _by_name(spoken, imperative, workflow):
        yield by_name
        return
    nouns = _nouns(imperative, known | workflow.vocabulary)
    matching = [word for word in nouns if best_similarity(stem(word), workflow.nouns) >= SYNONYM]
    if not _is_done_by(imperative.verb, workflow, known) or (nouns and nouns[-1] not in matching):
        return
    if nouns or stem(imperative.verb) not in _GENERIC:
        yield 1 + len(matching), imperative


def _by_name(
    spoken: tuple[str, ...], imperative: Imperative, workflow: DescribedWorkflow
) -> tuple[int, Imperative] | None:
    """Score and imperative of a request that names the workflow by its title, or as "the onboarding workflow"."""
    text = " ".join(spoken)
    if imperative.verb not in _STARTING:
        return None
    lower = [word.lower() for word in spoken]
    titled = lexical.contains_phrase(text, lexical.stems(workflow.title))
    if "workflow" not in lower:
        return (_TITLE_SCORE, Imperative(imperative.verb, ())) if titled else None
    end = lower.index("workflow")
    called = [word for word in lower[:end] if lexical.is_about(stem(word), workflow.vocabulary)]
    if not called:
        return None
    about = tuple(word for word in spoken[end + 1 :] if word.lower() not in OBJECT_ENDS | DETERMINERS | POLITE)
    return (_TITLE_SCORE if titled else len(called)), Imperative(imperative.verb, about)


def _nouns(imperative: Imperative, known: frozenset[str]) -> list[str]:
    """The nouns of an imperative's object, without names. After an article, an unknown word is a noun too."""
    words = [word for word in imperative.about if word.lower() not in STATES]
    nouns = [word for word in words if is_common(word, known)]
    if next(shaped("key", " ".join(words)), None):
        nouns.append("ticket")
    if not nouns and imperative.determiners:
        nouns = [word for word in words[-1:] if word.isalpha()]
    return nouns


def _is_done_by(verb: str, workflow: DescribedWorkflow, known: frozenset[str]) -> bool:
    """Whether a verb matches the workflow: the first word of its title, another uncommon word of the title, or a verb
    of its keywords."""
    first, *others = lexical.stems(workflow.title)
    verbs = {first, *(word for word in others if word not in known), *workflow.verbs}
    return best_similarity(stem(verb), verbs) > 0
