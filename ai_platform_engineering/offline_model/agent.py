"""An agent's turn: choose tools for what is asked, call them, answer from their results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ai_platform_engineering.offline_model import answers, forms, lookups, skill_guidance
from ai_platform_engineering.offline_model.arguments import Filled, fill
from ai_platform_engineering.offline_model.conversation import Conversation, Use
from ai_platform_engineering.offline_model.demands import Demand, adjusted, conditions, demand, is_instant
from ai_platform_engineering.offline_model.language import description_terms, is_plural
from ai_platform_engineering.offline_model.people import cancellation, rejection
from ai_platform_engineering.offline_model.references import (
    Before,
    has_pronoun,
    refers_back,
    resolve,
    without_context,
)
from ai_platform_engineering.offline_model.requests import Request, name_tokens, request_names
from ai_platform_engineering.offline_model.schemas import Profile, Property, Toolbox, toolbox
from ai_platform_engineering.offline_model.selection import choose, overview
from ai_platform_engineering.offline_model.sentences import clauses, is_question, leading_verb
from ai_platform_engineering.offline_model.tools import FORM_TOOL, STEERING_TOOLS, Call, Reply, Tool

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


@dataclass(frozen=True, slots=True)
class Unserved:
    """A part of a request that no tool serves, or a change that was to wait for something. `reason` says which."""

    text: str
    reason: str


Step = Call | Use | Missing | Canceled | Unserved
"""What one request has come to: a call to make, a call that was made, something that is missing, or nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a request: what it has come to, and what it demands of the result."""

    step: Step
    demand: Demand | None = None


def act(conversation: Conversation, tools: tuple[Tool, ...]) -> Reply:
    if (guided := skill_guidance.of_agent(conversation, tools, _box(tools).vocabulary)) is None:
        return _act(conversation, tools)
    if isinstance(guided, Reply):
        return guided
    return guided.reported(_act(guided.conversation, tools))


def _box(tools: tuple[Tool, ...]) -> Toolbox:
    return toolbox(tuple(tool for tool in tools if tool.name not in STEERING_TOOLS))


def _act(conversation: Conversation, tools: tuple[Tool, ...]) -> Reply:
    box = _box(tools)
    may_ask = any(tool.name == FORM_TOOL for tool in tools)
    parts = _parts(conversation, box, may_ask=may_ask)
    uses = [use for use in conversation.current.uses if use.name not in STEERING_TOOLS]
    calls = _distinct([part.step for part in parts if isinstance(part.step, Call)])
    own = [call for call in calls if call.name != FORM_TOOL]
    if own and len(uses) < MAX_CALLS:
        return Reply(calls=tuple(own[: MAX_CALLS - len(uses)]))
    # One form at a time, once all that can be done without it is done.
    if questions := [call for call in calls if call.name == FORM_TOOL]:
        return Reply(calls=(questions[0],))
    asked = any(use.name == FORM_TOOL for use in conversation.current.uses)
    return Reply(_answer(parts, uses, box.profiles, asked=asked), not_done=_not_done(parts, uses))


def _answer(parts: Sequence[Part], uses: Sequence[Use], profiles: Sequence[Profile], *, asked: bool) -> str:
    steps = [part.step for part in parts]
    shown = [use for use in uses if use.name not in _only_looked_up(steps, profiles) and not _is_replaced(use, steps)]
    if asked:
        # What was looked up for a form is not what the person wants to know.
        shown = [use for use in shown if use in steps]
    notes = [note for step in steps if (note := _note(step, alone=not shown))]
    if shown or (uses and not notes):
        demands = [(part.step, part.demand) for part in parts if isinstance(part.step, Use) and part.demand]
        return answers.from_uses(shown, profiles, notes, demands)
    return "\n\n".join(notes) or answers.nothing_fits(profiles)


def _not_done(parts: Sequence[Part], uses: Sequence[Use]) -> str | None:
    """Why nothing of what was asked is done; None where something is, or where a person decided against it."""
    if any(isinstance(part.step, Canceled) for part in parts):
        return None
    if any(not use.failed or rejection(use) is not None for use in uses) and (
        not parts or any(isinstance(part.step, Use) for part in parts)
    ):
        return None
    for part in parts:
        match part.step:
            case Missing():
                return f"{part.step.tool.name} needs more than the request says"
            case Unserved():
                return part.step.reason
            case Use():
                return f"{part.step.name} failed"
    return "no tool fits the request"


def _only_looked_up(steps: Sequence[Step], profiles: Sequence[Profile]) -> set[str]:
    return {
        name
        for step in steps
        if isinstance(step, Missing) and step.things
        for name in lookups.lookup_names(step.tool, step.properties, profiles)
    }


def _is_replaced(use: Use, steps: Sequence[Step]) -> bool:
    """Whether a call failed and was made again with fewer arguments."""
    if not use.failed or any(step is use for step in steps):
        return False
    return any(isinstance(step, Use) and step.name == use.name and not step.failed for step in steps)


def _note(step: Step, *, alone: bool) -> str | None:
    match step:
        case Missing():
            return answers.missing_detail(step.tool.name, step.properties, step.things)
        case Canceled():
            return answers.canceled(forms.title_of(step.tool), step.reason, alone=alone)
        case Unserved():
            return f"Not done: “{step.text}” ({step.reason})."
        case Call() if step.name != FORM_TOOL:
            given = answers.scope(step.arguments)
            return f"Not done: `{step.name}` ({given}). I make at most {MAX_CALLS} calls for one request."
        case _:
            return None


def _parts(conversation: Conversation, box: Toolbox, *, may_ask: bool) -> list[Part]:
    """What every part of the request has come to. A part that refers to one before it waits for its result."""
    known = _known(box, conversation.instructions)
    text = without_context(conversation.current.question)
    before = next((exchange for exchange in reversed(conversation.earlier) if exchange.answer), None)
    if before is not None and refers_back(text):
        asked = without_context(before.question)
        text = resolve(text, Before(asked, before.answer, request_names(Request(asked, known))))
    parts: list[Part] = []
    unserved: list[Part] = []
    done: list[str] = []
    for clause, *completions in _with_completions(clauses(text)[:_MAX_CLAUSES], known, box):
        wording = clause
        if done and has_pronoun(clause):
            last = parts[-1].step
            if not isinstance(last, Use):
                break
            names = request_names(Request(" ".join(done), known))
            wording = resolve(clause, Before(done[-1], answers.from_uses([last], box.profiles), names))
        request = Request(wording, known, may_ask=may_ask)
        part = _part(request, completions, box, conversation.current.uses, conversation.now)
        if part is not None:
            parts.append(part)
            done.append(clause)
        elif leading_verb(clause) is not None or is_question(clause):
            unserved.append(Part(Unserved(clause, "no tool of mine fits")))
    if not parts and (listed := overview(Request(text, known), box.profiles)) is not None:
        return [Part(_made(Call(listed.name, {}), conversation.current.uses))]
    return [*parts, *unserved] if parts else []


def _with_completions(spoken: Sequence[str], known: frozenset[str], box: Toolbox) -> list[list[str]]:
    """The clauses, each with those after it that only complete what it creates: "and assign it to lena"."""
    found: list[list[str]] = []
    for clause in spoken:
        if found and has_pronoun(clause) and _completes(clause, found[-1][0], known, box):
            found[-1].append(clause)
        else:
            found.append([clause])
    return found


def _completes(clause: str, before: str, known: frozenset[str], box: Toolbox) -> bool:
    created = choose(Request(before, known), box)
    if created is None or created[0].effect != "change" or choose(Request(clause, known), box) is not None:
        return False
    target, filled = created
    return _completed(clause, known, target, filled) != filled


def _completed(clause: str, known: frozenset[str], target: Profile, filled: Filled) -> Filled:
    """The arguments with what a further clause says about what they ask for. It gives no required ones."""
    held = {item.name: "" for item in target.required} | filled.arguments
    given = fill(target, Request(clause, known), held).arguments
    return replace(filled, arguments=filled.arguments | {name: given[name] for name in given if name not in held})


@lru_cache(maxsize=256)
def _known(box: Toolbox, instructions: str) -> frozenset[str]:
    """Stems that describe the agent and its tools, and so name no particular thing.

    Of the instructions only the first sentence, which says what the agent is; the rest has examples of names.
    """
    introduction = re.split(r"[.:\n]", instructions.strip(), maxsplit=1)[0]
    return description_terms(introduction) | box.vocabulary


def _part(
    request: Request, completions: Sequence[str], box: Toolbox, uses: Sequence[Use], now: datetime
) -> Part | None:
    chosen = choose(request, box)
    if chosen is None:
        return None
    target, filled = chosen
    for clause in completions:
        filled = _completed(clause, request.known, target, filled)
    if filled.missing:
        filled = lookups.with_lookups(target, filled, request, box.profiles, uses)
    if target.effect == "change" and (waits := conditions(request, target, filled.arguments, now)):
        named = " and ".join(f"“{item.phrase}”" for item in waits)
        return Part(Unserved(request.text.strip(), f"I can neither wait nor check conditions, so not {named}"))
    if filled.missing:
        return Part(_incomplete(target, filled, request, box.profiles, uses))
    arguments = adjusted(request, target, filled.arguments, now)
    step = _made(Call(target.name, arguments), uses, target)
    if isinstance(step, Use) and step.failed and (guesses := _guesses(request, target, arguments)):
        kept = {name: value for name, value in filled.arguments.items() if name not in guesses}
        arguments = adjusted(request, target, kept, now)
        step = _made(Call(target.name, arguments), uses, target)
    looked_up = lookups.evidence(arguments, uses) if target.effect == "change" else []
    return Part(step, demand(request, target, arguments, now, looked_up))


def _guesses(request: Request, target: Profile, arguments: Mapping[str, Any]) -> set[str]:
    """Optional arguments of a listing that a word was taken for only because it stands before the kind of things: in
    "stale pull requests" no repository is called stale."""
    if target.effect != "list":
        return set()
    spoken = name_tokens(request.text)
    beside = {one for one, other in pairwise(spoken) if is_plural(other)}
    return {
        item.name
        for item in target.properties
        if not item.required and not item.choices and arguments.get(item.name) in beside
    }


def _incomplete(
    target: Profile, filled: Filled, request: Request, profiles: Sequence[Profile], uses: Sequence[Use]
) -> Step:
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


def _made(call: Call, uses: Sequence[Use], target: Profile | None = None) -> Call | Use:
    """The call, or its use if it was made already: no call is made twice, also while the clock goes on."""
    times = {item.name for item in target.properties if is_instant(item)} if target else set()

    def compared(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in arguments.items() if name not in times}

    wanted = compared(call.arguments)
    return next((use for use in uses if use.name == call.name and compared(use.arguments) == wanted), call)


def _distinct(calls: Sequence[Call]) -> list[Call]:
    found: list[Call] = []
    for call in calls:
        if call not in found:
            found.append(call)
    return found
