"""The supervisor's turn: understand the request, plan, delegate, and answer from what the agents returned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ai_platform_engineering.utils.llm.offline import answers, language
from ai_platform_engineering.utils.llm.offline.arguments import Request
from ai_platform_engineering.utils.llm.offline.conversation import Conversation, Exchange, Use
from ai_platform_engineering.utils.llm.offline.references import CONTEXT, refers_back, resolve
from ai_platform_engineering.utils.llm.offline.tools import (
    DELEGATION_TOOL,
    PLAN_TOOL,
    Agent,
    Call,
    Reply,
    Tool,
    described_agents,
)

_NAME_WEIGHT, _KEYWORD_WEIGHT, _DESCRIPTION_WEIGHT = 10.0, 4.0, 1.5
_THRESHOLD = 1.2
_CLOSE = 0.75
_MAX_DELEGATIONS = 6
_SMALL_TALK = re.compile(
    r"^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening)|thanks?(?:\s+you)?|help|ping|test|yo|howdy"
    r"|(?:so\s+)?what\s+(?:can|do)\s+you\s+do|who\s+are\s+you|how\s+can\s+you\s+help|what\s+are\s+your\s+\w+)\b"
    r"(?:\s+(?:there|all|everyone|please|me|for\s+me|with))*\W*$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Delegation:
    """One part of a request and the agent that serves it."""

    agent: Agent
    request: str
    context: str = ""

    @property
    def description(self) -> str:
        return f"{self.request}{CONTEXT}{self.context}" if self.context else self.request


def act(conversation: Conversation, tools: tuple[Tool, ...]) -> Reply:
    agents = described_agents(next(tool.description for tool in tools if tool.name == DELEGATION_TOOL))
    uses = conversation.current.uses
    done = [use for use in uses if use.name == DELEGATION_TOOL]
    if done:
        return Reply(answers.signed(summary(conversation, agents)))
    question = conversation.current.question
    if _SMALL_TALK.match(question) or not language.words(question):
        return Reply(
            answers.signed(
                f"Hello! I plan a request and hand its parts to these agents:\n\n{answers.capabilities(agents)}"
            )
        )
    delegations = plan(conversation, agents)
    ready = [item for item in delegations if item.agent.no_tools is None]
    if not ready:
        return Reply(answers.signed(_refusal(delegations, agents)))
    if any(tool.name == PLAN_TOOL for tool in tools) and not any(use.name == PLAN_TOOL for use in uses):
        return Reply(_narration(ready, question), (_plan_call(ready, question),))
    calls = tuple(
        Call(DELEGATION_TOOL, {"description": item.description, "subagent_type": item.agent.name}) for item in ready
    )
    return Reply("" if uses else _narration(ready, question), calls)


def summary(conversation: Conversation, agents: Sequence[Agent]) -> str:
    """The answer from what the delegations returned."""
    done = [use for use in conversation.current.uses if use.name == DELEGATION_TOOL]
    results = [use for use in done if use.result is not None]
    names = [str(use.arguments.get("subagent_type", "")) for use in results]
    parts = [
        _result(use, heading=len(results) > 1, several=names.count(name) > 1)
        for use, name in zip(results, names, strict=True)
    ]
    left_out = [item for item in plan(conversation, agents) if item.agent.no_tools is not None] if agents else []
    parts += [f"**{item.agent.title}** could not be asked: {item.agent.no_tools}" for item in left_out]
    if unfinished := _unfinished(conversation):
        parts.append("Not finished: " + "; ".join(unfinished) + ".")
    return "\n\n".join(parts) or "Nothing was gathered."


def _result(use: Use, *, heading: bool, several: bool) -> str:
    agent = str(use.arguments.get("subagent_type", "")).replace("_", " ").title()
    text = (use.result or "").strip()
    if use.failed:
        text = f"{agent} could not do this: {' '.join(text.split()) or 'no reason was given.'}"
    elif not text:
        text = f"{agent} returned nothing."
    if not heading:
        return text
    asked = str(use.arguments.get("description", "")).split(CONTEXT, 1)[0]
    return f"### {agent}{f': {asked}' if several else ''}\n\n{text}"


def _unfinished(conversation: Conversation) -> list[str]:
    """Steps of the plan that no delegation was made for, when the work was cut short."""
    if not conversation.cut_short:
        return []
    uses = conversation.current.uses
    served = [
        str(use.arguments.get("subagent_type"))
        for use in uses
        if use.name == DELEGATION_TOOL and use.result is not None
    ]
    left: list[str] = []
    latest = next((use for use in reversed(uses) if use.name == PLAN_TOOL), None)
    for step in latest.arguments.get("steps", ()) if latest else ():
        if step.get("agent") in served:
            served.remove(step["agent"])
        elif step.get("agent"):
            left.append(f"{step['content']} ({step['agent']})")
    return left


def plan(conversation: Conversation, agents: Sequence[Agent]) -> list[Delegation]:
    """The parts of the current request and who serves each."""
    question = conversation.current.question.strip()
    delegations = _delegations(question, tuple(agents))
    earlier = [exchange for exchange in conversation.earlier if exchange.answer]
    if not earlier or not (refers_back(question) or not delegations):
        return delegations
    before = earlier[-1]
    if not refers_back(question):
        return delegations
    known = _vocabulary(tuple(agents))
    names = list(dict.fromkeys(Request(before.question, known).names()))
    resolved = resolve(question, earlier, names)
    context = f"this follows the question {before.question!r}."
    found = _delegations(resolved, tuple(agents)) or [
        Delegation(agent, resolved) for agent in _agents_of(before, agents)
    ]
    if not delegations and found and not _names_agent(resolved, found):
        asked = _agents_of(before, agents)
        found = [Delegation(agent, resolved) for agent in asked] or found
    return [Delegation(item.agent, item.request, context) for item in found]


def _names_agent(text: str, delegations: Sequence[Delegation]) -> bool:
    spoken = set(language.terms(text))
    return any(set(_name_terms(item.agent)) & spoken for item in delegations)


def _agents_of(exchange: Exchange, agents: Sequence[Agent]) -> list[Agent]:
    asked = [use.arguments.get("subagent_type") for use in exchange.uses if use.name == DELEGATION_TOOL]
    return [agent for agent in agents if agent.name in asked]


@lru_cache(maxsize=64)
def _vocabulary(agents: tuple[Agent, ...]) -> frozenset[str]:
    return frozenset(
        term
        for agent in agents
        for term in (*_name_terms(agent), *_keyword_terms(agent), *language.terms(agent.description))
    )


@lru_cache(maxsize=512)
def _name_terms(agent: Agent) -> tuple[str, ...]:
    joined = language.stem(agent.name.replace("_", "").replace("-", ""))
    return (joined, *(language.stem(word) for word in language.identifier_words(agent.name)))


@lru_cache(maxsize=512)
def _keyword_terms(agent: Agent) -> frozenset[str]:
    return frozenset(term for keyword in agent.keywords for term in language.terms(keyword))


def _scores(text: str, agents: tuple[Agent, ...]) -> list[tuple[float, bool, Agent]]:
    """(score, is named, agent) for every agent that the text has something in common with."""
    spoken = [term for term in language.terms(text) if term not in _PLAIN]
    pairs = {language.stem(a + b) for a, b in zip(language.words(text), language.words(text)[1:], strict=False)}
    found: list[tuple[float, bool, Agent]] = []
    for agent in agents:
        named = any(name in spoken or name in pairs for name in _name_terms(agent))
        score = _NAME_WEIGHT if named else 0.0
        for term in spoken:
            score += _term_score(term, agent) / max(1, sum(1 for other in agents if _term_score(term, other) > 0))
        if score > 0:
            found.append((score, named, agent))
    return found


_PLAIN = frozenset(
    language.stem(word)
    for word in language.READ_VERBS | language.CREATE_VERBS | {"update", "delete", "change", "manage"}
)


@lru_cache(maxsize=16384)
def _term_score(term: str, agent: Agent) -> float:
    if term in _name_terms(agent):
        return 0.0
    if by_keyword := language.best_similarity(term, _keyword_terms(agent)):
        return _KEYWORD_WEIGHT * (1.0 if by_keyword == 1.0 else 0.4)
    by_description = language.best_similarity(term, language.terms(agent.description))
    return _DESCRIPTION_WEIGHT * (1.0 if by_description == 1.0 else 0.4 if by_description else 0.0)


def _fitting(text: str, agents: tuple[Agent, ...]) -> list[Agent]:
    scores = _scores(text, agents)
    if named := [agent for _, is_named, agent in scores if is_named]:
        return named
    best = max((score for score, _, _ in scores), default=0.0)
    if best < _THRESHOLD:
        return []
    return [agent for score, _, agent in scores if score >= max(best * _CLOSE, _THRESHOLD)]


@lru_cache(maxsize=512)
def _delegations_cached(question: str, agents: tuple[Agent, ...]) -> tuple[Delegation, ...]:
    parts: list[Delegation] = []
    pending = ""
    for clause in language.clauses(question):
        fitting = _fitting(clause, agents)
        if not fitting and parts and len(language.clauses(question)) > 1:
            last = parts.pop()
            parts.append(Delegation(last.agent, f"{last.request} {clause}"))
            continue
        if not fitting:
            pending = f"{pending} {clause}".strip()
            continue
        text, pending = f"{pending} {clause}".strip(), ""
        if len(fitting) == 1:
            parts += [Delegation(fitting[0], part) for part in _things(text, fitting[0], agents)]
        else:
            parts += [
                Delegation(agent, _part_for(text, agent, fitting), f"part of the request {question!r}.")
                for agent in fitting
            ]
    return tuple(parts[:_MAX_DELEGATIONS])


def _delegations(question: str, agents: tuple[Agent, ...]) -> list[Delegation]:
    return list(_delegations_cached(question, agents))


def _things(text: str, agent: Agent, agents: tuple[Agent, ...]) -> list[str]:
    """One request per thing, when a clause asks the same about several named things."""
    known = _vocabulary(agents)
    members = language.members(text)
    named = [(member, next(Request(member, known).names(), None)) for member in members]
    if len(members) < 2 or any(name is None for _, name in named):
        return [text]
    head, tail = members[0], members[-1]
    first, last = str(named[0][1]), str(named[-1][1])
    before = head[: head.index(first)] if first in head else ""
    after = tail[tail.index(last) + len(last) :] if last in tail else ""
    verb = language.leading_verb(text)
    if verb == "compare":
        before = re.sub(r"^\W*\w*\s*compare", "show", before, flags=re.I)
    after = " " + " ".join(_singular(word) for word in after.split()) if after.strip() else ""
    return [f"{before}{name}{after}".strip() for _, name in named]


def _singular(word: str) -> str:
    return re.sub(r"(?<=[a-z]{2})s(?=\W*$)", "", word)


def _part_for(text: str, agent: Agent, fitting: Sequence[Agent]) -> str:
    """The clause with the other agents' names taken out."""
    part = text
    for other in fitting:
        if other is not agent:
            pattern = r"[\s_-]?".join(map(re.escape, other.name.split("_")))
            part = re.sub(
                rf"(?:\b(?:and|or|with|vs\.?|versus|to|against)\s+|,\s*)?\b(?:in\s+|on\s+|from\s+)?{pattern}\b",
                "",
                part,
                flags=re.I,
            )
    part = re.sub(r"\s+(?:and|or|with|vs\.?|versus|,)\s*$", "", re.sub(r"\s{2,}", " ", part))
    part = re.sub(r"^(\W*\w*\s*)?compare\s+(?:and\s+|the\s+)*", "show ", part, flags=re.I)
    return re.sub(r"\s+([?.!,])", r"\1", re.sub(r"\b(show)\s+(?:and|or)\s+", r"\1 ", part)).strip()


def _narration(delegations: Sequence[Delegation], question: str) -> str:
    asks = [_ask(item) for item in delegations]
    if len(asks) == 1:
        return f"I'll ask {asks[0]}."
    closing = "compare" if language.leading_verb(question) == "compare" else "combine"
    return f"I'll ask {', '.join(asks[:-1])} and, at the same time, {asks[-1]}, then {closing} the results."


def _ask(item: Delegation) -> str:
    request = item.request.rstrip(" .!?;:")
    if language.leading_verb(request) is not None:
        return f"{item.agent.title} to {request[:1].lower()}{request[1:]}"
    return f"{item.agent.title} about “{request}”"


def _plan_call(delegations: Sequence[Delegation], question: str) -> Call:
    steps = [
        {"content": _sentence(item.request), "agent": item.agent.name, "status": "pending"} for item in delegations
    ]
    if len(steps) > 1:
        closing = "Compare the results" if language.leading_verb(question) == "compare" else "Combine the results"
        steps.append({"content": closing, "agent": None, "status": "pending"})  # type: ignore[dict-item]
    return Call(PLAN_TOOL, {"title": _sentence(question), "steps": steps})


def _sentence(text: str, limit: int = 80) -> str:
    text = " ".join(text.split()).rstrip(" .!?;:")
    if len(text) > limit:
        text = f"{text[:limit].rsplit(' ', 1)[0]} ..."
    return text[:1].upper() + text[1:]


def _refusal(delegations: Sequence[Delegation], agents: Sequence[Agent]) -> str:
    if delegations:
        reasons = [
            f"**{item.agent.title}** would serve this, but has no tools: {item.agent.no_tools}" for item in delegations
        ]
        return "\n".join(dict.fromkeys(reasons))
    return f"None of my agents can serve this request. What I can do:\n\n{answers.capabilities(agents)}"
