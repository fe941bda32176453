"""Intents: the parts of a request, each with the agent that serves it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.requests import RequestText, is_common, name_tokens, request_names
from ai_platform_engineering.offline_model.english.sentences import (
    clauses,
    is_question,
    leading_verb,
    members,
    requested_changes,
)
from ai_platform_engineering.offline_model.english.vocabulary import CREATE_VERBS, POLITE
from ai_platform_engineering.offline_model.messages.tools import Agent
from ai_platform_engineering.offline_model.planning.references import PreviousExchange, has_pronoun, resolve
from ai_platform_engineering.offline_model.planning.routing import fitting, named_agents, vocabulary

_SUBJECT_MATTER = re.compile(
    r"\b(?:about|mentioning|containing|regarding|concerning|related\s+to|matching|saying|titled|called|named)\b|(?<=\w):\s",
    re.I,
)
_WRITTEN_MATTER = re.compile(rf"{_SUBJECT_MATTER.pattern}|\b(?:for|that|because|with)\b", re.I)
_MAX_CLAUSES = 16
_WRITING_VERBS = frozenset(lexical.stem(word) for word in CREATE_VERBS | {"comment", "write", "reply", "post", "send"})


@dataclass(frozen=True, slots=True)
class Intent:
    """One part of a request and the agent that serves it.

    `depends_on_earlier`: it refers to the results of earlier parts."""

    agent: Agent
    request: str
    depends_on_earlier: bool = False


@dataclass(frozen=True, slots=True)
class _Group:
    """Adjacent members of an enumeration that fit the same agents."""

    text: str
    agents: tuple[Agent, ...]


@lru_cache(maxsize=512)
def intents(question: str, agents: tuple[Agent, ...]) -> tuple[Intent, ...]:
    found: list[Intent] = []
    unclaimed: list[str] = []
    for clause in clauses(question)[:_MAX_CLAUSES]:
        groups = _groups(clause, agents)
        if not groups:
            if not lexical.terms(clause):
                continue
            if found:
                found[-1] = replace(found[-1], request=f"{found[-1].request.rstrip('.')}. {clause}")
            else:
                unclaimed.append(clause)
            continue
        for intent in _group_intents(clause, groups, agents):
            _add(found, intent, agents)
    if found and unclaimed:
        found[0] = replace(found[0], request=". ".join([*unclaimed, found[0].request]))
    return tuple(found)


def _add(found: list[Intent], intent: Intent, agents: tuple[Agent, ...]) -> None:
    """Add a part. One that refers to an earlier part is resolved, joined to it, or set to depend on its result."""
    if not found or not has_pronoun(intent.request):
        found.append(intent)
        return
    names = [name for before in found for name in request_names(RequestText(before.request, vocabulary(agents)))]
    writes = any(_WRITING_VERBS.intersection(requested_changes(before.request)) for before in found)
    if names and not writes:
        found.append(
            replace(intent, request=resolve(intent.request, PreviousExchange(found[-1].request, "", names[-1:])))
        )
    elif found[-1].agent == intent.agent:
        found[-1] = replace(found[-1], request=f"{found[-1].request.rstrip('.?!')}, then {intent.request}")
    else:
        found.append(replace(intent, depends_on_earlier=True))


def _groups(clause: str, agents: tuple[Agent, ...]) -> list[_Group]:
    """The clause, split where the fitting agents change. Empty if no agent fits any part of it."""
    changes = requested_changes(clause)
    matter = (_WRITTEN_MATTER if _WRITING_VERBS.intersection(changes) else _SUBJECT_MATTER).search(clause)
    if matter and (head := fitting(clause[: matter.start()], agents)):
        return [_Group(clause, head)]
    spans: list[tuple[int, int, tuple[Agent, ...]]] = []
    for start, end in members(clause):
        text = clause[start:end]
        fits = fitting(text, agents)
        if spans and not named_agents(text, agents):
            first, _, before = spans[-1]
            shared = tuple(agent for agent in before if agent in fits)
            if not fits or shared or not before:
                spans[-1] = (first, end, shared or before or fits)
                continue
        elif spans and not spans[-1][2]:
            spans[-1] = (spans[-1][0], end, fits)
            continue
        spans.append((start, end, fits))
    return [_Group(clause[start:end], fits) for start, end, fits in spans if fits]


def _group_intents(clause: str, groups: Sequence[_Group], agents: tuple[Agent, ...]) -> list[Intent]:
    found: list[Intent] = []
    for position, group in enumerate(groups):
        text = _completed(position, groups)
        text = _with_verb(text, clause, is_first=position == 0)
        if len(group.agents) == 1:
            found += [Intent(group.agents[0], part) for part in _split_by_thing(text, agents)]
        else:
            found += [Intent(agent, _without_others(text, agent, group.agents)) for agent in group.agents]
    return found


def _completed(position: int, groups: Sequence[_Group]) -> str:
    """The group's text; an agent's name alone gets the object of its neighbour: "Jira and GitHub issues"."""
    group = groups[position]
    if _content(group):
        return group.text
    for neighbour in (*groups[position + 1 :], *reversed(groups[:position])):
        if _content(neighbour):
            described = _without_names(neighbour.text, neighbour.agents)
            verb = leading_verb(described)
            if verb:
                described = re.sub(rf"^.*?\b{verb}\b\s*", "", described, flags=re.I)
            return f"{group.text.rstrip()} {described}"
    return group.text


def _content(group: _Group) -> list[str]:
    text = _without_names(group.text, group.agents)
    return [word for word in lexical.words(text) if not lexical.is_stop_word(word) and word != leading_verb(text)]


def _name_pattern(agent: Agent) -> str:
    spelled = r"[\s_-]?".join(map(re.escape, re.split(r"[_-]", agent.name)))
    return rf"\b{spelled}\b"


def _without_names(text: str, agents: Sequence[Agent]) -> str:
    for agent in agents:
        text = re.sub(rf"(?:\b(?:in|on|from|at)\s+)?{_name_pattern(agent)}\s*", "", text, flags=re.I)
    return text.strip()


def _without_others(text: str, agent: Agent, agents: Sequence[Agent]) -> str:
    """The text without the names of the other agents."""
    for other in agents:
        if other != agent:
            text = re.sub(
                rf"\s*(?:\b(?:and|or|with|to|against)\s+|[,/]\s*)?(?:\b(?:in|on|from|at)\s+)?{_name_pattern(other)}(?:\s*/|\s+(?:and|or)\b)?",
                "",
                text,
                flags=re.I,
            )
    return re.sub(r"\s{2,}", " ", text).strip()


def _with_verb(text: str, clause: str, *, is_first: bool) -> str:
    """The part with the verb of its clause. "Compare" becomes "show": the results are compared later."""
    verb = leading_verb(clause)
    own = leading_verb(text)
    if own == "compare":
        lead = "|".join(map(re.escape, sorted(POLITE, key=len, reverse=True)))
        return re.sub(rf"^(?:(?:{lead})\W+)*compare\b", "show", text, flags=re.I)
    if is_first or own is not None or is_question(text):
        return text
    return f"{'show' if verb in {None, 'compare'} else verb} {text}"


def _split_by_thing(text: str, agents: tuple[Agent, ...]) -> list[str]:
    """One request for each thing, if a request names several."""
    spans = members(text)
    if len(spans) < 2 or _WRITING_VERBS.intersection(requested_changes(text)):
        return [text]
    known = vocabulary(agents)
    names = [_only_name(text[start:end], known) for start, end in spans]
    if any(names):
        # Next to names, a single ordinary word is a name too: an application can be called "search".
        names = [name or _only_word(text[start:end]) for name, (start, end) in zip(names, spans, strict=True)]
    if None in names:
        return [text]
    things = [str(name) for name in names]
    first, last = text[: spans[0][1]], text[spans[-1][0] :]
    before = first[: first.index(things[0])]
    after = re.sub(r"(?<=[a-z]{2})s(?=\W*$)", "", last[last.index(things[-1]) + len(things[-1]) :].rstrip(" ?.!"))
    return [f"{before}{thing}{after}".strip() for thing in things]


def _only_name(member: str, known: frozenset[str]) -> str | None:
    """The name in a member of an enumeration that contains exactly one."""
    names = [token for token in name_tokens(member) if not is_common(token, known)]
    return names[0] if len(names) == 1 else None


def _only_word(member: str) -> str | None:
    spoken = [token for token in name_tokens(member) if token.lower() not in {"the", "a", "an"}]
    return spoken[0] if len(spoken) == 1 and not lexical.is_stop_word(spoken[0]) else None
