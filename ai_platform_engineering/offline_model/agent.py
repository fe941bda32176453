"""An agent's turn: choose a tool for each part of the request, call the tools, answer from their results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ai_platform_engineering.offline_model import answers
from ai_platform_engineering.offline_model.english.lexical import description_terms, is_plural
from ai_platform_engineering.offline_model.english.requests import RequestText, name_tokens, request_names
from ai_platform_engineering.offline_model.english.sentences import clauses, is_question, leading_verb
from ai_platform_engineering.offline_model.messages.conversation import (
    ParsedConversation,
    ToolUse,
    cancellation_reason,
    rejection_reason,
)
from ai_platform_engineering.offline_model.messages.tools import (
    CONTROL_TOOLS,
    FORM_TOOL,
    BoundTool,
    ModelReply,
    PlannedCall,
)
from ai_platform_engineering.offline_model.planning.references import (
    PreviousExchange,
    has_pronoun,
    refers_back,
    resolve,
    without_context,
)
from ai_platform_engineering.offline_model.results.rendering import arguments_in_words
from ai_platform_engineering.offline_model.skills import agent_guidance
from ai_platform_engineering.offline_model.tool_calls import forms, lookups
from ai_platform_engineering.offline_model.tool_calls.arguments import FilledArguments, fill
from ai_platform_engineering.offline_model.tool_calls.criteria import (
    Criteria,
    adjusted_arguments,
    conditions,
    is_time_bound,
    remaining_criteria,
)
from ai_platform_engineering.offline_model.tool_calls.schemas import Property, Toolbox, ToolProfile, toolbox
from ai_platform_engineering.offline_model.tool_calls.selection import choose, overview

MAX_CALLS = 6
_MAX_CLAUSES = 12


@dataclass(frozen=True, slots=True)
class MissingArguments:
    """A part that lacks required arguments (`properties`). `thing_names` and `options` are candidates for them."""

    tool: ToolProfile
    properties: tuple[Property, ...]
    thing_names: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CanceledForm:
    """A part whose form a person canceled."""

    tool: ToolProfile
    reason: str


@dataclass(frozen=True, slots=True)
class UnservedClause:
    """A part that no tool serves, or a change with a condition or a future time. `reason` says which."""

    text: str
    reason: str


PartState = PlannedCall | ToolUse | MissingArguments | CanceledForm | UnservedClause
"""The state of one part: a call to make, a call that was made, or the reason why there is none."""


@dataclass(frozen=True, slots=True)
class RequestPart:
    """One part of a request: its state, and the criteria for its result."""

    state: PartState
    criteria: Criteria | None = None


def act(conversation: ParsedConversation, tools: tuple[BoundTool, ...]) -> ModelReply:
    if (guided := agent_guidance.guidance_for(conversation, tools, _box(tools).vocabulary)) is None:
        return _act(conversation, tools)
    if isinstance(guided, ModelReply):
        return guided
    return guided.reported(_act(guided.conversation, tools))


def _box(tools: tuple[BoundTool, ...]) -> Toolbox:
    return toolbox(tuple(tool for tool in tools if tool.name not in CONTROL_TOOLS))


def _act(conversation: ParsedConversation, tools: tuple[BoundTool, ...]) -> ModelReply:
    box = _box(tools)
    may_ask = any(tool.name == FORM_TOOL for tool in tools)
    parts = _parts(conversation, box, may_ask=may_ask)
    uses = [use for use in conversation.current.uses if use.name not in CONTROL_TOOLS]
    calls = _without_duplicates([part.state for part in parts if isinstance(part.state, PlannedCall)])
    own = [call for call in calls if call.name != FORM_TOOL]
    if own and len(uses) < MAX_CALLS:
        return ModelReply(calls=tuple(own[: MAX_CALLS - len(uses)]))
    # One form at a time, after all calls that need none.
    if questions := [call for call in calls if call.name == FORM_TOOL]:
        return ModelReply(calls=(questions[0],))
    used_form = any(use.name == FORM_TOOL for use in conversation.current.uses)
    return ModelReply(_answer(parts, uses, box.profiles, used_form=used_form), not_done=_not_done(parts, uses))


def _answer(
    parts: Sequence[RequestPart], uses: Sequence[ToolUse], profiles: Sequence[ToolProfile], *, used_form: bool
) -> str:
    states = [part.state for part in parts]
    shown = [use for use in uses if use.name not in _lookup_tools(states, profiles) and not _was_retried(use, states)]
    if used_form:
        # Lookups for the options of a form are not part of the answer.
        shown = [use for use in shown if use in states]
    notes = [note for state in states if (note := _note(state, alone=not shown))]
    if shown or (uses and not notes):
        criteria_by_use = [
            (part.state, part.criteria) for part in parts if isinstance(part.state, ToolUse) and part.criteria
        ]
        return answers.from_uses(shown, profiles, notes, criteria_by_use)
    return "\n\n".join(notes) or answers.nothing_fits(profiles)


def _not_done(parts: Sequence[RequestPart], uses: Sequence[ToolUse]) -> str | None:
    """Why nothing of the request is done; None when something is, or when a person rejected or canceled it."""
    if any(isinstance(part.state, CanceledForm) for part in parts):
        return None
    if any(not use.failed or rejection_reason(use) is not None for use in uses) and (
        not parts or any(isinstance(part.state, ToolUse) for part in parts)
    ):
        return None
    for part in parts:
        match part.state:
            case MissingArguments():
                return f"{part.state.tool.name} needs more than the request says"
            case UnservedClause():
                return part.state.reason
            case ToolUse():
                return f"{part.state.name} failed"
    return "no tool fits the request"


def _lookup_tools(states: Sequence[PartState], profiles: Sequence[ToolProfile]) -> set[str]:
    return {
        name
        for state in states
        if isinstance(state, MissingArguments) and state.thing_names
        for name in lookups.lookup_names(state.tool, state.properties, profiles)
    }


def _was_retried(use: ToolUse, states: Sequence[PartState]) -> bool:
    """Whether a call failed and was then retried with fewer arguments."""
    if not use.failed or any(state is use for state in states):
        return False
    return any(isinstance(state, ToolUse) and state.name == use.name and not state.failed for state in states)


def _note(state: PartState, *, alone: bool) -> str | None:
    match state:
        case MissingArguments():
            return answers.missing_detail(state.tool.name, state.properties, state.thing_names)
        case CanceledForm():
            return answers.cancellation_text(forms.title_of(state.tool), state.reason, alone=alone)
        case UnservedClause():
            return f"Not done: “{state.text}” ({state.reason})."
        case PlannedCall() if state.name != FORM_TOOL:
            given = arguments_in_words(state.arguments)
            return f"Not done: `{state.name}` ({given}). I make at most {MAX_CALLS} calls for one request."
        case _:
            return None


def _parts(conversation: ParsedConversation, box: Toolbox, *, may_ask: bool) -> list[RequestPart]:
    """The state of every part of the request. A part that refers to an earlier one waits for its result."""
    known = _known_stems(box, conversation.instructions)
    text = without_context(conversation.current.question)
    before = next((exchange for exchange in reversed(conversation.earlier) if exchange.answer), None)
    if before is not None and refers_back(text):
        earlier = without_context(before.question)
        text = resolve(text, PreviousExchange(earlier, before.answer, request_names(RequestText(earlier, known))))
    parts: list[RequestPart] = []
    unserved: list[RequestPart] = []
    done: list[str] = []
    for clause, *completions in _with_completions(clauses(text)[:_MAX_CLAUSES], known, box):
        wording = clause
        if done and has_pronoun(clause):
            last = parts[-1].state
            if not isinstance(last, ToolUse):
                break
            names = request_names(RequestText(" ".join(done), known))
            wording = resolve(clause, PreviousExchange(done[-1], answers.from_uses([last], box.profiles), names))
        request = RequestText(wording, known, may_ask=may_ask)
        part = _part(request, completions, box, conversation.current.uses, conversation.now)
        if part is not None:
            parts.append(part)
            done.append(clause)
        elif leading_verb(clause) is not None or is_question(clause):
            unserved.append(RequestPart(UnservedClause(clause, "no tool of mine fits")))
    if not parts and (listed := overview(RequestText(text, known), box.profiles)) is not None:
        return [RequestPart(_call_or_use(PlannedCall(listed.name, {}), conversation.current.uses))]
    return [*parts, *unserved] if parts else []


def _with_completions(spoken: Sequence[str], known: frozenset[str], box: Toolbox) -> list[list[str]]:
    """Clauses, each followed by the clauses that only add arguments to it: "and assign it to lena"."""
    found: list[list[str]] = []
    for clause in spoken:
        if found and has_pronoun(clause) and _only_adds_arguments(clause, found[-1][0], known, box):
            found[-1].append(clause)
        else:
            found.append([clause])
    return found


def _only_adds_arguments(clause: str, before: str, known: frozenset[str], box: Toolbox) -> bool:
    created = choose(RequestText(before, known), box)
    if created is None or created[0].effect != "change" or choose(RequestText(clause, known), box) is not None:
        return False
    target, filled = created
    return _with_added_arguments(clause, known, target, filled) != filled


def _with_added_arguments(
    clause: str, known: frozenset[str], target: ToolProfile, filled: FilledArguments
) -> FilledArguments:
    """The arguments, extended with optional ones from a further clause."""
    existing = {item.name: "" for item in target.required} | filled.arguments
    given = fill(target, RequestText(clause, known), existing).arguments
    return replace(filled, arguments=filled.arguments | {name: given[name] for name in given if name not in existing})


@lru_cache(maxsize=256)
def _known_stems(box: Toolbox, instructions: str) -> frozenset[str]:
    """Stems that describe the agent and its tools and therefore are not names of things.

    Only the first sentence of the instructions counts: it describes the agent. The rest contains example names.
    """
    introduction = re.split(r"[.:\n]", instructions.strip(), maxsplit=1)[0]
    return description_terms(introduction) | box.vocabulary


def _part(
    request: RequestText, completions: Sequence[str], box: Toolbox, uses: Sequence[ToolUse], now: datetime
) -> RequestPart | None:
    chosen = choose(request, box)
    if chosen is None:
        return None
    target, filled = chosen
    for clause in completions:
        filled = _with_added_arguments(clause, request.known, target, filled)
    if filled.missing:
        filled = lookups.with_lookups(target, filled, request, box.profiles, uses)
    if target.effect == "change" and (unmet := conditions(request, target, filled.arguments, now)):
        named = " and ".join(f"“{item.phrase}”" for item in unmet)
        return RequestPart(
            UnservedClause(request.text.strip(), f"I can neither wait nor check conditions, so not {named}")
        )
    if filled.missing:
        return RequestPart(_incomplete(target, filled, request, box.profiles, uses))
    arguments = adjusted_arguments(request, target, filled.arguments, now)
    state = _call_or_use(PlannedCall(target.name, arguments), uses, target)
    if isinstance(state, ToolUse) and state.failed and (guesses := _guessed_arguments(request, target, arguments)):
        remaining = {name: value for name, value in filled.arguments.items() if name not in guesses}
        arguments = adjusted_arguments(request, target, remaining, now)
        state = _call_or_use(PlannedCall(target.name, arguments), uses, target)
    looked_up = lookups.argument_sources(arguments, uses) if target.effect == "change" else []
    return RequestPart(state, remaining_criteria(request, target, arguments, now, looked_up))


def _guessed_arguments(request: RequestText, target: ToolProfile, arguments: Mapping[str, Any]) -> set[str]:
    """Optional arguments of a listing that were guessed from the word before a plural noun: in "stale pull requests",
    "stale" may be no repository."""
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
    target: ToolProfile,
    filled: FilledArguments,
    request: RequestText,
    profiles: Sequence[ToolProfile],
    uses: Sequence[ToolUse],
) -> PartState:
    lookup = lookups.lookup(target, filled, request, profiles)
    if lookup is not None and not any(use.name == lookup.name for use in uses):
        return lookup
    missing = MissingArguments(
        target,
        tuple(filled.missing),
        lookups.thing_names(target, filled.missing[0], profiles, uses),
        filled.arguments,
        lookups.options(target, filled.missing, request, profiles, uses),
    )
    return _ask_with_form(missing, uses) if request.may_ask else missing


def _ask_with_form(missing: MissingArguments, uses: Sequence[ToolUse]) -> PartState:
    """Ask for the missing arguments with a form; once it is submitted, make the call with its values."""
    call = forms.form_call(missing.tool, missing.properties, missing.arguments, missing.options)
    if call is None:
        return missing
    form = _call_or_use(call, uses)
    if isinstance(form, PlannedCall):
        return form
    if (reason := cancellation_reason(form)) is not None:
        return CanceledForm(missing.tool, reason)
    given = {**missing.arguments, **(forms.submitted(form, missing.tool) or {})}
    if any(item.name not in given for item in missing.properties):
        return missing
    return _call_or_use(PlannedCall(missing.tool.name, given), uses)


def _call_or_use(
    call: PlannedCall, uses: Sequence[ToolUse], target: ToolProfile | None = None
) -> PlannedCall | ToolUse:
    """The call, or its use if it was already made. Arguments that are points in time are not compared: they change
    with the clock."""
    times = {item.name for item in target.properties if is_time_bound(item)} if target else set()

    def compared(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in arguments.items() if name not in times}

    wanted = compared(call.arguments)
    return next((use for use in uses if use.name == call.name and compared(use.arguments) == wanted), call)


def _without_duplicates(calls: Sequence[PlannedCall]) -> list[PlannedCall]:
    found: list[PlannedCall] = []
    for call in calls:
        if call not in found:
            found.append(call)
    return found
