"""An agent's turn: choose tools for what is asked, call them, answer from their results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.utils.llm.offline import answers, language
from ai_platform_engineering.utils.llm.offline.arguments import Filled, Request, fill, from_records
from ai_platform_engineering.utils.llm.offline.conversation import Conversation, Use
from ai_platform_engineering.utils.llm.offline.language import (
    best_similarity,
    requested_changes,
    similarity,
    stem,
    terms,
)
from ai_platform_engineering.utils.llm.offline.references import without_context
from ai_platform_engineering.utils.llm.offline.rendering import parse, records_of
from ai_platform_engineering.utils.llm.offline.schemas import Profile, Property, profile
from ai_platform_engineering.utils.llm.offline.tools import Call, Reply, Tool

MAX_CALLS = 6
_MAX_REQUESTS = 4
_WORTH_FILLING = 8
_THRESHOLD = 2.0
_PLURAL_QUESTIONS = frozenset({"list", "which", "all", "every", "any", "many", "search", "find", "who"})


@dataclass(frozen=True, slots=True)
class Missing:
    """A request that cannot be served yet: what is not known, and what there is to choose from."""

    tool: Profile
    properties: tuple[Property, ...]
    options: tuple[str, ...] = ()


def act(conversation: Conversation, tools: tuple[Tool, ...]) -> Reply:
    profiles = tuple(profile(tool) for tool in tools)
    uses = conversation.current.uses
    text = without_context(conversation.current.question)
    requests = _requests(text, profiles, conversation.instructions)
    steps = [_next_step(request, profiles, uses) for request in requests]
    calls = _new_calls([step for step in steps if isinstance(step, Call)], uses)
    if calls and len(uses) < MAX_CALLS:
        return Reply(calls=calls[: MAX_CALLS - len(uses)])
    if uses:
        gaps = [
            answers.missing_detail(step.tool.name, step.properties, step.options)
            for step in steps
            if isinstance(step, Missing)
        ]
        return Reply(answers.from_uses(uses, profiles, gaps))
    gap = next((step for step in steps if isinstance(step, Missing)), None)
    if gap is not None:
        return Reply(answers.missing_detail(gap.tool.name, gap.properties, gap.options))
    return Reply(answers.nothing_fits(profiles))


def _requests(text: str, profiles: Sequence[Profile], instructions: str) -> list[Request]:
    known = frozenset(terms(instructions)) | frozenset(
        word
        for item in profiles
        for word in (*item.nouns, *item.description, *(w for p in item.properties for w in p.words))
    )
    parts = language.clauses(text)[:_MAX_REQUESTS] or (text,)
    return [Request(part, known) for part in parts]


def _new_calls(calls: Sequence[Call], uses: Sequence[Use]) -> tuple[Call, ...]:
    made = [(use.name, dict(use.arguments)) for use in uses]
    fresh: list[Call] = []
    for call in calls:
        key = (call.name, dict(call.arguments))
        if key not in made:
            made.append(key)
            fresh.append(call)
    return tuple(fresh)


def _next_step(request: Request, profiles: Sequence[Profile], uses: Sequence[Use]) -> Call | Missing | None:
    """The next call for one request, what it lacks, or None if nothing (more) is to be done."""
    chosen = choose(request, profiles)
    if chosen is None:
        return None
    target, filled = chosen
    if filled.missing:
        filled = _with_lookups(target, filled, request, profiles, uses)
    if not filled.missing:
        call = Call(target.name, filled.arguments)
        return (
            call if (call.name, dict(call.arguments)) not in [(use.name, dict(use.arguments)) for use in uses] else None
        )
    lookup = _lookup(target, filled, request, profiles)
    if lookup is not None and not any(use.name == lookup.name for use in uses):
        return lookup
    return Missing(target, tuple(filled.missing))


def _with_lookups(
    target: Profile, filled: Filled, request: Request, profiles: Sequence[Profile], uses: Sequence[Use]
) -> Filled:
    """Fill what is missing from things that were looked up for it."""
    given: dict[str, Any] = dict(filled.arguments)
    for item in filled.missing:
        lookup = _lookup_tool(target, item, profiles)
        use = next((use for use in uses if lookup and use.name == lookup.name and use.result and not use.failed), None)
        if use is None or use.result is None:
            continue
        records = records_of(parse(use.result))
        value = from_records(item, records, request)
        if value is None and _may_take_any(target, item):
            value = from_records(item, records[:1], request)
        if value is not None:
            given[item.name] = value
    return fill(target, request, given)


def _may_take_any(target: Profile, item: Property) -> bool:
    """Something new has to go somewhere, and any place will do; what is changed must have been named."""
    created = target.verb in {stem(verb) for verb in language.CREATE_VERBS}
    return created and not target.tool.destructive and not set(item.words) & set(target.nouns)


def _lookup(target: Profile, filled: Filled, request: Request, profiles: Sequence[Profile]) -> Call | None:
    for item in filled.missing:
        tool = _lookup_tool(target, item, profiles)
        if tool is not None:
            arguments = fill(tool, request)
            if not arguments.missing:
                return Call(tool.name, arguments.arguments)
    return None


def _lookup_tool(target: Profile, item: Property, profiles: Sequence[Profile]) -> Profile | None:
    """The tool that lists what the argument names."""
    kinds = [word for word in item.words if word not in {"name", "id", "key", "number"}] or list(target.nouns)
    fitting = [
        (sum(best_similarity(kind, candidate.nouns) for kind in kinds), -len(candidate.nouns), -position, candidate)
        for position, candidate in enumerate(profiles)
        if candidate.effect == "list" and candidate is not target
    ]
    best = max(fitting, key=lambda entry: entry[:3], default=None)
    return best[3] if best is not None and best[0] > 0 else None


def choose(request: Request, profiles: Sequence[Profile]) -> tuple[Profile, Filled] | None:
    """The tool that fits a request best, with the arguments found for it."""
    changes = requested_changes(request.text)
    frequency = Counter(word for item in profiles for word in set(item.nouns))
    wanted = [term for term in terms(request.text) if not _is_plain_verb(term)]
    eligible = [item for item in profiles if item.effect != "change" or _is_asked_for(item, changes, wanted)]
    ranked = sorted(
        (
            (_lexical_score(item, wanted, changes, frequency, len(profiles)), -position, item)
            for position, item in enumerate(eligible)
        ),
        key=lambda entry: entry[:2],
        reverse=True,
    )
    best: tuple[float, int, Profile, Filled] | None = None
    for score, position, item in ranked[:_WORTH_FILLING]:
        filled = fill(item, request)
        total = score + _fit(item, filled, request, changes)
        if best is None or (total, position) > best[:2]:
            best = (total, position, item, filled)
    if best is None or best[0] < _THRESHOLD:
        return _overview(request, profiles) if not changes else None
    return best[2], best[3]


_PLAIN_VERBS = frozenset(stem(verb) for verb in language.READ_VERBS)


def _is_plain_verb(term: str) -> bool:
    return term in _PLAIN_VERBS


def _is_asked_for(item: Profile, changes: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the request asks for the change that the tool makes."""
    vocabulary = (item.verb, *item.nouns) if item.verb else item.nouns
    return any(similarity(change, word) >= 0.8 for change in changes for word in vocabulary if word)


def _lexical_score(
    item: Profile, wanted: Sequence[str], changes: Sequence[str], frequency: Mapping[str, int], count: int
) -> float:
    score = 0.0
    matched: set[str] = set()
    for term in wanted:
        by_noun = max(((similarity(term, noun), noun) for noun in item.nouns), default=(0.0, ""))
        if by_noun[0] > 0:
            score += 4 * by_noun[0] * _rarity(by_noun[1], frequency, count)
            matched.add(by_noun[1])
        elif term in item.description:
            score += 1.0
        elif best_similarity(term, item.description) > 0:
            score += 0.6
        elif any(term in prop.words for prop in item.properties):
            score += 0.75
    score -= sum(1.0 for noun in item.nouns if noun not in matched)
    if item.effect == "change":
        score += 5 * max(
            (similarity(change, word) for change in changes for word in (item.verb or "", *item.nouns)), default=0
        )
    elif changes:
        score -= 4
    return score


def _rarity(noun: str, frequency: Mapping[str, int], count: int) -> float:
    return 1 + 0.4 * math.log(max(count, 1) / max(frequency.get(noun, 1), 1))


def _fit(item: Profile, filled: Filled, request: Request, changes: Sequence[str]) -> float:
    """How well the shape of the tool goes with the shape of the request."""
    score = -2.0 * len(filled.missing)
    score += 1.5 * sum(1 for prop in item.properties if prop.choices and prop.name in filled.arguments)
    if item.effect == "change":
        return score
    plural = bool(_PLURAL_QUESTIONS.intersection(language.words(request.text)))
    named = any(prop.name in filled.arguments for prop in item.required)
    if item.effect == "list":
        score += 1.5 if plural else 0.5
    elif item.required:
        score += (2.5 if named and not plural else 0.5) if named else -1.0
    return score


def _overview(request: Request, profiles: Sequence[Profile]) -> tuple[Profile, Filled] | None:
    """When nothing fits: the first listing that needs no arguments, if the request asks to see something at all."""
    if not _PLAIN_VERBS.intersection(language.stems(request.text)):
        return None
    return next(((item, Filled()) for item in profiles if item.effect == "list" and not item.required), None)
