"""An agent's turn: choose tools for what is asked, call them, answer from their results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ai_platform_engineering.utils.llm.offline import answers
from ai_platform_engineering.utils.llm.offline.arguments import Filled, fill, from_records
from ai_platform_engineering.utils.llm.offline.conversation import Conversation, Use
from ai_platform_engineering.utils.llm.offline.language import best_similarity, description_terms, stem
from ai_platform_engineering.utils.llm.offline.references import (
    Before,
    has_pronoun,
    refers_back,
    resolve,
    without_context,
)
from ai_platform_engineering.utils.llm.offline.rendering import identity, listing, parse
from ai_platform_engineering.utils.llm.offline.requests import Request, request_names
from ai_platform_engineering.utils.llm.offline.schemas import Profile, Property, Toolbox, toolbox
from ai_platform_engineering.utils.llm.offline.selection import choose, overview
from ai_platform_engineering.utils.llm.offline.sentences import clauses
from ai_platform_engineering.utils.llm.offline.tools import Call, Reply, Tool
from ai_platform_engineering.utils.llm.offline.vocabulary import CREATE_VERBS

MAX_CALLS = 6
_MAX_CLAUSES = 12
_CREATE = frozenset(stem(verb) for verb in CREATE_VERBS)


@dataclass(frozen=True, slots=True)
class Missing:
    """A request that cannot be served: what is not known, and what there is to choose from."""

    tool: Profile
    properties: tuple[Property, ...]
    options: tuple[str, ...] = ()


Step = Call | Use | Missing
"""What one request has come to: a call to make, a call that was made, or something that is missing."""


def act(conversation: Conversation, tools: tuple[Tool, ...]) -> Reply:
    box = toolbox(tools)
    profiles = box.profiles
    uses = conversation.current.uses
    steps = _steps(conversation, box)
    calls = _distinct([step for step in steps if isinstance(step, Call)])
    if calls and len(uses) < MAX_CALLS:
        return Reply(calls=tuple(calls[: MAX_CALLS - len(uses)]))
    gaps = [
        answers.missing_detail(step.tool.name, step.properties, step.options)
        for step in steps
        if isinstance(step, Missing)
    ]
    if uses:
        looked_up = {
            name
            for step in steps
            if isinstance(step, Missing) and step.options
            for name in _lookup_names(step, profiles)
        }
        return Reply(answers.from_uses([use for use in uses if use.name not in looked_up], profiles, gaps))
    return Reply("\n\n".join(gaps) or answers.nothing_fits(profiles))


def _steps(conversation: Conversation, box: Toolbox) -> list[Step]:
    """What every part of the request has come to. A part that refers to one before it waits for its result."""
    known = _known(box, conversation.instructions)
    text = without_context(conversation.current.question)
    before = next((exchange for exchange in reversed(conversation.earlier) if exchange.answer), None)
    if before is not None and refers_back(text):
        asked = without_context(before.question)
        text = resolve(text, Before(asked, before.answer, request_names(Request(asked, known))))
    steps: list[Step] = []
    done: list[str] = []
    for clause in clauses(text)[:_MAX_CLAUSES]:
        wording = clause
        if done and has_pronoun(clause):
            last = steps[-1]
            if not isinstance(last, Use):
                break
            names = request_names(Request(" ".join(done), known))
            wording = resolve(clause, Before(done[-1], answers.from_uses([last], box.profiles), names))
        step = _step(Request(wording, known), box, conversation.current.uses)
        if step is not None:
            steps.append(step)
            done.append(clause)
    if not steps and (listed := overview(Request(text, known), box.profiles)) is not None:
        steps.append(_made(Call(listed.name, {}), conversation.current.uses))
    return steps


@lru_cache(maxsize=256)
def _known(box: Toolbox, instructions: str) -> frozenset[str]:
    """Stems that describe the agent and its tools, and so name no particular thing.

    Of the instructions only the first sentence, which says what the agent is; the rest has examples of names.
    """
    introduction = re.split(r"[.:\n]", instructions.strip(), maxsplit=1)[0]
    return description_terms(introduction) | box.vocabulary


def _step(request: Request, box: Toolbox, uses: Sequence[Use]) -> Step | None:
    profiles = box.profiles
    chosen = choose(request, box)
    if chosen is None:
        return None
    target, filled = chosen
    if filled.missing:
        filled = _with_lookups(target, filled, request, profiles, uses)
    if not filled.missing:
        return _made(Call(target.name, filled.arguments), uses)
    lookup = _lookup(target, filled, request, profiles)
    if lookup is not None and not any(use.name == lookup.name for use in uses):
        return lookup
    return Missing(target, tuple(filled.missing), _options(target, filled, profiles, uses))


def _made(call: Call, uses: Sequence[Use]) -> Call | Use:
    """The call, or its use if it was made already: no call is made twice."""
    return next((use for use in uses if use.name == call.name and dict(use.arguments) == dict(call.arguments)), call)


def _distinct(calls: Sequence[Call]) -> list[Call]:
    found: list[Call] = []
    for call in calls:
        if call not in found:
            found.append(call)
    return found


def _with_lookups(
    target: Profile, filled: Filled, request: Request, profiles: Sequence[Profile], uses: Sequence[Use]
) -> Filled:
    """Fill what is missing from things that were looked up for it."""
    given = dict(filled.arguments)
    for item in filled.missing:
        records = _looked_up(target, item, profiles, uses)
        value = from_records(item, records, request, named=target.tool.destructive)
        if value is None and records and _may_take_any(target, item):
            value = from_records(item, records[:1], request)
        if value is not None:
            given[item.name] = value
    return fill(target, request, given)


def _may_take_any(target: Profile, item: Property) -> bool:
    """Something new has to go somewhere, and any place will do; what is changed must have been named."""
    return target.verb in _CREATE and not target.tool.destructive and not set(item.words) & set(target.nouns)


def _looked_up(
    target: Profile, item: Property, profiles: Sequence[Profile], uses: Sequence[Use]
) -> Sequence[Mapping[str, Any]]:
    tool = _lookup_tool(target, item, profiles)
    for use in uses:
        if tool is not None and use.name == tool.name and use.result is not None and not use.failed:
            found = listing(parse(use.result))
            return found.records if found else ()
    return ()


def _options(target: Profile, filled: Filled, profiles: Sequence[Profile], uses: Sequence[Use]) -> tuple[str, ...]:
    records = _looked_up(target, filled.missing[0], profiles, uses)
    return tuple(name for record in records[:20] if (name := identity(record)))


def _lookup(target: Profile, filled: Filled, request: Request, profiles: Sequence[Profile]) -> Call | None:
    for item in filled.missing:
        tool = _lookup_tool(target, item, profiles)
        if tool is not None and not (arguments := fill(tool, request)).missing:
            return Call(tool.name, arguments.arguments)
    return None


def _lookup_names(step: Missing, profiles: Sequence[Profile]) -> list[str]:
    tools = [_lookup_tool(step.tool, item, profiles) for item in step.properties]
    return [tool.name for tool in tools if tool is not None]


def _lookup_tool(target: Profile, item: Property, profiles: Sequence[Profile]) -> Profile | None:
    """The tool that lists what an argument names."""
    kinds = [word for word in item.words if word not in {"name", "id", "key", "number"}] or list(target.nouns)
    fitting = [
        (sum(best_similarity(kind, candidate.nouns) for kind in kinds), -len(candidate.nouns), -position, candidate)
        for position, candidate in enumerate(profiles)
        if candidate.effect == "list" and candidate is not target
    ]
    best = max(fitting, key=lambda entry: entry[:3], default=None)
    return best[3] if best is not None and best[0] > 0 else None
