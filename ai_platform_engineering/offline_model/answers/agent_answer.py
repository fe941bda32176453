"""An agent's answer: the results of its tool calls as Markdown, and notes on requests it could not serve."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.offline_model.answers.filtering import FilteredListing, filter_listing, unapplied
from ai_platform_engineering.offline_model.english.lexical import spaced, stem
from ai_platform_engineering.offline_model.english.vocabulary import CHANGE_VERBS, CREATE_VERBS, GET_VERBS, LIST_VERBS
from ai_platform_engineering.offline_model.messages.conversation import ToolUse, rejection_reason, with_edited_arguments
from ai_platform_engineering.offline_model.results.parsing import Listing, identity, listing, parse
from ai_platform_engineering.offline_model.results.rendering import (
    arguments_in_words,
    enumeration,
    inline,
    render,
    render_listing,
)
from ai_platform_engineering.offline_model.tool_calls.criteria import Criteria, is_limit
from ai_platform_engineering.offline_model.tool_calls.schemas import Property, ToolProfile

STOPPED_EARLY = "I had to stop here, before I could be sure that everything was done."
NOTHING_GATHERED = "I had to stop before anything was gathered."
NO_REASON = "no reason was given."
_NOTHING_FITS = "None of my tools fits this request."
_NO_TOOLS = "I have no tools at the moment, so I cannot look anything up or change anything."
_REASON = re.compile(r"\bno tools\b[^:.\n]*:\s*(?P<reason>[^\n]+?[.!])(?=\s|$)")
_REFUSAL = re.compile(r"`[^`]+`[^\n]* was not run: a person rejected it\.|The form “[^”]*” was canceled\b")
_CREATE = frozenset(stem(verb) for verb in CREATE_VERBS)
_VERBS = frozenset(stem(verb) for verb in CHANGE_VERBS | GET_VERBS | LIST_VERBS)


def from_uses(
    uses: Sequence[ToolUse],
    profiles: Sequence[ToolProfile],
    gaps: Sequence[str] = (),
    criteria_by_use: Sequence[tuple[ToolUse, Criteria]] = (),
) -> str:
    """An agent's answer from its tool calls, each result filtered by its criteria.

    Lookups that only provided an argument of a later call are left out.
    """
    by_name = {item.name: item for item in profiles}
    shown = [use for use in uses if use.result is not None]
    targets = [
        use for position, use in enumerate(shown) if not _only_provided_argument(use, shown[position + 1 :], by_name)
    ]
    parts: list[str] = []
    for use in targets:
        own: list[Criteria | None] = [criteria for other, criteria in criteria_by_use if other is use]
        parts += [_use_text(use, by_name.get(use.name), criteria) for criteria in own or [None]]
    return "\n\n".join([*dict.fromkeys(parts), *gaps]) or "The tools gave no result."


def _only_provided_argument(use: ToolUse, later: Sequence[ToolUse], profiles: Mapping[str, ToolProfile]) -> bool:
    """Whether a listing only provided an argument of a later call."""
    item = profiles.get(use.name)
    found = listing(parse(use.result or ""))
    if item is None or item.effect != "list" or use.failed or found is None:
        return False
    given = {str(value) for other in later if other.name != use.name for value in other.arguments.values()}
    return any(str(value) in given for record in found.records for value in record.values())


def _use_text(use: ToolUse, item: ToolProfile | None, criteria: Criteria | None) -> str:
    edited = with_edited_arguments(use)
    if edited.failed:
        text = _failure_text(edited)
    elif criteria is None or edited is not use:
        text = _result_text(edited, item)
    else:
        text = _filtered_text(edited, item, criteria)
    return text if edited is use else f"A person changed the arguments.\n\n{text}"


def _filtered_text(use: ToolUse, item: ToolProfile | None, criteria: Criteria) -> str:
    found = listing(parse(use.result or ""))
    is_change = item is not None and item.effect == "change"
    if found is None or is_change:
        text, left = _result_text(use, item), unapplied(criteria, all_words=is_change)
    else:
        filtered = filter_listing(found, criteria)
        text, left = _result_text(use, item, filtered), filtered.unapplied
    return f"{text}\n\nI did not apply {enumeration(left)}." if left else text


def _failure_text(use: ToolUse) -> str:
    given = arguments_in_words(use.arguments)
    called = f"`{use.name}`{f' ({given})' if given else ''}"
    if (reason := rejection_reason(use)) is not None:
        return f"{called} was not run: {rejection_text(reason)}"
    return f"{called} failed: {_one_paragraph(use.result or '')}"


def _result_text(use: ToolUse, item: ToolProfile | None, filtered: FilteredListing | None = None) -> str:
    value = parse(use.result or "")
    if item is not None and item.effect == "change":
        return _change_text(item, value, use.arguments)
    found = filtered.found if filtered else listing(value)
    limits = ", ".join(
        filter(None, [arguments_in_words(_shown_arguments(use, item)), *(filtered.applied if filtered else ())])
    )
    if found is not None and (item is None or item.effect == "list" or not use.arguments):
        return _listing_text(found, _noun(use.name), limits)
    if filtered and filtered.applied:
        return (
            f"{_heading(use.name, use.arguments)} ({', '.join(filtered.applied)}):\n\n{render_listing(filtered.found)}"
        )
    if isinstance(value, dict | list) and value:
        return f"{_heading(use.name, use.arguments)}:\n\n{render(value)}"
    return render(value) if value not in ("", [], {}) else f"`{use.name}` returned nothing."


def _shown_arguments(use: ToolUse, item: ToolProfile | None) -> dict[str, Any]:
    """The arguments to show with a listing. A limit that the results do not reach is left out."""
    found = listing(parse(use.result or ""))
    if item is None or found is None or found.total > len(found.records):
        return dict(use.arguments)
    limits = {each.name for each in item.properties if is_limit(each)}
    count = len(found.records)
    return {name: value for name, value in use.arguments.items() if name not in limits or value <= count}


def _listing_text(found: Listing, noun: str, given: str) -> str:
    limits = f" ({given})" if given else ""
    if not found.records:
        return f"No {noun} found{limits}."
    count = f"{found.total} {_singular(noun) if found.total == 1 else noun}"
    return f"{count}{limits}:\n\n{render(list(found.records)) if not found.facts else _with_facts(found)}"


def _singular(noun: str) -> str:
    return f"{noun.removesuffix('ies')}y" if noun.endswith("ies") else noun.removesuffix("s")


def _with_facts(found: Listing) -> str:
    return render({**found.facts, "entries": list(found.records)})


def _verb_and_noun(tool: str) -> tuple[str, str]:
    """Verb and noun of a tool's name: `list_pull_requests` is "list" and "pull requests"."""
    parts = spaced(tool).lower().split()
    if len(parts) > 1 and stem(parts[0]) in _VERBS:
        return parts[0], " ".join(parts[1:])
    return "", parts[-1] if parts else tool


def _noun(tool: str) -> str:
    return _verb_and_noun(tool)[1]


def _heading(tool: str, arguments: Mapping[str, Any]) -> str:
    noun = _noun(tool)
    named = " ".join(inline(value) for value in arguments.values() if isinstance(value, str | int))
    return f"{noun[:1].upper()}{noun[1:]}{f' **{named}**' if named else ''}"


def _change_text(item: ToolProfile, value: Any, arguments: Mapping[str, Any]) -> str:
    """The outcome of a change, with the message of the tool if it has one, and the resulting values."""
    details = dict(value) if isinstance(value, dict) else value
    message = details.pop("message", None) if isinstance(details, dict) else None
    verb, noun = _verb_and_noun(item.name)
    if item.verb in _CREATE and isinstance(details, dict) and (name := identity(details)):
        head = f"Created {noun} **{name}**."
    elif isinstance(message, str) and message:
        head = message
    else:
        named = next((inline(value) for value in arguments.values() if isinstance(value, str | int)), "")
        head = f"Done: {verb or 'change'} {noun}{f' **{named}**' if named else ''}."
    return f"{head}\n\n{render(details)}" if details else head


def rejection_text(reason: str) -> str:
    """The sentence about a call that a person rejected."""
    return f"a person rejected it. The reason: {_sentence(reason)}" if reason else "a person rejected it."


def cancellation_text(title: str, reason: str, *, alone: bool = True) -> str:
    """The sentence about a form that a person canceled. `alone`: the request had no other part."""
    why = f" ({reason.rstrip('.')})" if reason else ""
    return (
        f"The form “{title}” was canceled{why}, so {'nothing' if alone else 'that'} was {'' if alone else 'not '}done."
    )


def without_refusals(answer: str) -> str:
    """An answer without rejected calls and canceled forms, so that later steps do not refer to them."""
    return "\n\n".join(part for part in answer.split("\n\n") if not _REFUSAL.match(part))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _one_paragraph(text: str) -> str:
    return " ".join(text.split()) or NO_REASON


def missing_detail(tool: str, properties: Sequence[Property], options: Sequence[str] = ()) -> str:
    wanted = " and ".join(map(_described, properties))
    choice = f" There are: {', '.join(options)}." if options else ""
    return f"For `{tool}` I need {wanted}; the request does not say.{choice}"


def _described(item: Property) -> str:
    explanation = f" ({item.description.rstrip('.')})" if item.description else ""
    return f"the {spaced(item.name).lower()}{explanation}"


def nothing_fits(profiles: Sequence[ToolProfile]) -> str:
    lines = [f"- `{item.name}`: {_first_sentence(item.tool.description)}" for item in profiles[:20]]
    return "\n".join([f"{_NOTHING_FITS} I can use:", "", *lines])


def could_not_help(result: str) -> bool:
    """Whether an agent only answered that it cannot serve the request."""
    return result.lstrip().startswith((_NOTHING_FITS, _NO_TOOLS))


def no_tools(instructions: str) -> str:
    """The answer of an agent without tools, with the reason if its instructions state one."""
    reason = _REASON.search(instructions)
    return f"{_NO_TOOLS} The reason: {reason['reason']}" if reason else _NO_TOOLS


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
