"""An agent's turn: choose tools for what is asked, call them, answer from their results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ai_platform_engineering.utils.llm.offline import answers, forms, lookups
from ai_platform_engineering.utils.llm.offline.conversation import Conversation, Use
from ai_platform_engineering.utils.llm.offline.language import description_terms
from ai_platform_engineering.utils.llm.offline.people import cancellation
from ai_platform_engineering.utils.llm.offline.references import (
    Before,
    has_pronoun,
    refers_back,
    resolve,
    without_context,
)
from ai_platform_engineering.utils.llm.offline.requests import Request, request_names
from ai_platform_engineering.utils.llm.offline.schemas import Profile, Property, Toolbox, toolbox
from ai_platform_engineering.utils.llm.offline.selection import choose, overview
from ai_platform_engineering.utils.llm.offline.sentences import clauses
from ai_platform_engineering.utils.llm.offline.tools import FORM_TOOL, STEERING_TOOLS, Call, Reply, Tool

MAX_CALLS = 6
_MAX_CLAUSES = 12


@dataclass(frozen=True, slots=True)
class Missing:
    """A request that cannot be served: what is not known, and what there is to choose from."""

    tool: Profile
    properties: tuple[Property, ...]
    things: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Canceled:
    """A request that a person was asked about and took back."""

    tool: Profile
    reason: str


Step = Call | Use | Missing | Canceled
"""What one request has come to: a call to make, a call that was made, something that is missing, or nothing."""


def act(conversation: Conversation, tools: tuple[Tool, ...]) -> Reply:
    box = toolbox(tuple(tool for tool in tools if tool.name not in STEERING_TOOLS))
    may_ask = any(tool.name == FORM_TOOL for tool in tools)
    steps = _steps(conversation, box, may_ask=may_ask)
    uses = [use for use in conversation.current.uses if use.name not in STEERING_TOOLS]
    calls = _distinct([step for step in steps if isinstance(step, Call)])
    own = [call for call in calls if call.name != FORM_TOOL]
    if own and len(uses) < MAX_CALLS:
        return Reply(calls=tuple(own[: MAX_CALLS - len(uses)]))
    # One form at a time, once all that can be done without it is done.
    if questions := [call for call in calls if call.name == FORM_TOOL]:
        return Reply(calls=(questions[0],))
    asked = any(use.name == FORM_TOOL for use in conversation.current.uses)
    return Reply(_answer(steps, uses, box.profiles, asked=asked))


def _answer(steps: Sequence[Step], uses: Sequence[Use], profiles: Sequence[Profile], *, asked: bool) -> str:
    shown = [use for use in uses if use.name not in _only_looked_up(steps, profiles)]
    if asked:
        # What was looked up for a form is not what the person wants to know.
        shown = [use for use in shown if use in steps]
    notes = [note for step in steps if (note := _note(step, alone=not shown))]
    if shown or (uses and not notes):
        return answers.from_uses(shown, profiles, notes)
    return "\n\n".join(notes) or answers.nothing_fits(profiles)


def _only_looked_up(steps: Sequence[Step], profiles: Sequence[Profile]) -> set[str]:
    return {
        name
        for step in steps
        if isinstance(step, Missing) and step.things
        for name in lookups.lookup_names(step.tool, step.properties, profiles)
    }


def _note(step: Step, *, alone: bool) -> str | None:
    match step:
        case Missing():
            return answers.missing_detail(step.tool.name, step.properties, step.things)
        case Canceled():
            return answers.canceled(forms.title_of(step.tool), step.reason, alone=alone)
        case _:
            return None


def _steps(conversation: Conversation, box: Toolbox, *, may_ask: bool) -> list[Step]:
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
        step = _step(Request(wording, known, may_ask=may_ask), box, conversation.current.uses)
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
        filled = lookups.with_lookups(target, filled, request, profiles, uses)
    if not filled.missing:
        return _made(Call(target.name, filled.arguments), uses)
    lookup = lookups.lookup(target, filled, request, profiles)
    if lookup is not None and not any(use.name == lookup.name for use in uses):
        return lookup
    missing = Missing(
        target,
        tuple(filled.missing),
        lookups.things(target, filled.missing[0], profiles, uses),
        filled.arguments,
        lookups.options(target, filled.missing, request, profiles, uses),
    )
    return _asked_for(missing, uses) if request.may_ask else missing


def _asked_for(missing: Missing, uses: Sequence[Use]) -> Step:
    """What is missing is asked for with a form, and the call is made with what comes back."""
    call = forms.form_call(missing.tool, missing.properties, missing.arguments, missing.options)
    if call is None:
        return missing
    form = _made(call, uses)
    if isinstance(form, Call):
        return form
    if (reason := cancellation(form)) is not None:
        return Canceled(missing.tool, reason)
    given = {**missing.arguments, **(forms.submitted(form, missing.tool) or {})}
    if any(item.name not in given for item in missing.properties):
        return missing
    return _made(Call(missing.tool.name, given), uses)


def _made(call: Call, uses: Sequence[Use]) -> Call | Use:
    """The call, or its use if it was made already: no call is made twice."""
    return next((use for use in uses if use.name == call.name and dict(use.arguments) == dict(call.arguments)), call)


def _distinct(calls: Sequence[Call]) -> list[Call]:
    found: list[Call] = []
    for call in calls:
        if call not in found:
            found.append(call)
    return found
