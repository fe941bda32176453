"""Answers in Markdown, written from what the tools and the agents returned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.offline_model.conversation import Use
from ai_platform_engineering.offline_model.demands import Demand, is_limit
from ai_platform_engineering.offline_model.language import spaced, stem
from ai_platform_engineering.offline_model.people import as_made, rejection
from ai_platform_engineering.offline_model.rendering import (
    Listing,
    identity,
    inline,
    listing,
    parse,
    render,
    render_listing,
)
from ai_platform_engineering.offline_model.schemas import Profile, Property
from ai_platform_engineering.offline_model.sifting import Sifted, sift, unapplied
from ai_platform_engineering.offline_model.tools import Agent
from ai_platform_engineering.offline_model.vocabulary import CHANGE_VERBS, CREATE_VERBS, GET_VERBS, LIST_VERBS

SIGNATURE = (
    "_Answered by the offline model, which matches words and does not reason. "
    "Set `LLM_PROVIDER` to use a language model._"
)
_FACT = re.compile(r"^- \*\*(?P<label>[^*]+):\*\* (?P<value>.+)$")
_REFUSAL = re.compile(r"`[^`]+`[^\n]* was not run: a person rejected it\.|The form “[^”]*” was canceled\b")
_CREATE = frozenset(stem(verb) for verb in CREATE_VERBS)
_VERBS = frozenset(stem(verb) for verb in CHANGE_VERBS | GET_VERBS | LIST_VERBS)


@dataclass(frozen=True, slots=True)
class Part:
    """What one agent was asked and what came of it."""

    agent: str
    request: str
    text: str
    failed: bool = False
    rejection: str | None = None
    """Why a person rejected it, if one did."""


def enumeration(things: Sequence[str]) -> str:
    return f"{', '.join(things[:-1])} and {things[-1]}" if len(things) > 1 else things[0]


def signed(text: str) -> str:
    return f"{text}\n\n{SIGNATURE}"


def combined(parts: Sequence[Part], notes: Sequence[str] = (), *, side_by_side: bool = False) -> str:
    """The supervisor's answer: one result as it is, several in sections, what failed said plainly."""
    if not parts:
        return "\n\n".join(notes) or "Nothing was gathered."
    if len(parts) == 1:
        return "\n\n".join([told(parts[0]), *notes])
    sections = [f"### {title}\n\n{told(part)}" for title, part in zip(_titles(parts), parts, strict=True)]
    if side_by_side:
        sections.insert(0, _comparison(parts))
    return "\n\n".join([*sections, *notes])


def told(part: Part) -> str:
    if part.rejection is not None:
        return f"{part.agent} did not do this: {rejected(part.rejection)}"
    if part.failed:
        return f"{part.agent} could not do this: {part.text.strip() or _NO_REASON}"
    return part.text or f"{part.agent} returned nothing."


def _titles(parts: Sequence[Part]) -> list[str]:
    """The agents' names, with what they were asked where one was asked twice."""
    agents = [part.agent for part in parts]
    return [f"{part.agent}: {part.request}" if agents.count(part.agent) > 1 else part.agent for part in parts]


def _comparison(parts: Sequence[Part]) -> str:
    """The facts that all results state, next to each other; else the first line of each."""
    facts = [_facts(part.text) for part in parts]
    shared = [key for key in facts[0] if all(key in other for other in facts[1:])]
    if len(shared) < 2:
        lines = [f"{title}: {_first_line(told(part))}" for title, part in zip(_titles(parts), parts, strict=True)]
        return f"{'; '.join(lines)}."
    differing = [key for key in shared if len({other[key] for other in facts}) > 1]
    rows = [["", *_distinctions(parts)], ["---"] * (len(parts) + 1)]
    rows += [[key, *(other[key].replace("|", "\\|") for other in facts)] for key in shared]
    verdict = f"They differ in {', '.join(key.lower() for key in differing)}." if differing else "They do not differ."
    return "\n".join([verdict, "", *(f"| {' | '.join(row)} |" for row in rows)])


def _distinctions(parts: Sequence[Part]) -> list[str]:
    """What sets each request apart from the others."""
    spoken = [part.request.split() for part in parts]
    common = set(spoken[0]).intersection(*spoken[1:])
    return [
        " ".join(word for word in each if word not in common) or part.agent
        for each, part in zip(spoken, parts, strict=True)
    ]


def _facts(text: str) -> dict[str, str]:
    return {match["label"]: match["value"] for match in map(_FACT.match, text.splitlines()) if match}


def _first_line(text: str) -> str:
    return next((line.strip().rstrip(":") for line in text.splitlines() if line.strip()), "")


def greeting(agents: Sequence[Agent]) -> str:
    return f"Hello! I plan a request and hand its parts to agents:\n\n{capabilities(agents)}"


def refusal(without_tools: Sequence[Agent], agents: Sequence[Agent]) -> str:
    if without_tools:
        reasons = [f"{agent.title} would serve this, but has no tools: {agent.no_tools}" for agent in without_tools]
        return "\n\n".join(dict.fromkeys(reasons))
    return f"None of my agents can serve this request. What I can do:\n\n{capabilities(agents)}"


def capabilities(agents: Sequence[Agent]) -> str:
    lines = [
        f"- **{agent.title}**: {agent.description}{f' (not available: {agent.no_tools})' if agent.no_tools else ''}"
        for agent in agents
    ]
    return "\n".join(lines) or "No agents are available at the moment."


def from_uses(
    uses: Sequence[Use],
    profiles: Sequence[Profile],
    gaps: Sequence[str] = (),
    demands: Sequence[tuple[Use, Demand]] = (),
) -> str:
    """An agent's answer from the tools it used, each result as it meets the demands on it.

    A lookup that only served a later call is not repeated.
    """
    by_name = {item.name: item for item in profiles}
    shown = [use for use in uses if use.result is not None]
    targets = [use for position, use in enumerate(shown) if not _served(use, shown[position + 1 :], by_name)]
    parts: list[str] = []
    for use in targets:
        own: list[Demand | None] = [demanded for other, demanded in demands if other is use]
        parts += [_of_use(use, by_name.get(use.name), demanded) for demanded in own or [None]]
    return "\n\n".join([*dict.fromkeys(parts), *gaps]) or "The tools gave no result."


def _served(use: Use, later: Sequence[Use], profiles: Mapping[str, Profile]) -> bool:
    """Whether a listing was only there to find an argument of a later call."""
    item = profiles.get(use.name)
    found = listing(parse(use.result or ""))
    if item is None or item.effect != "list" or use.failed or found is None:
        return False
    given = {str(value) for other in later if other.name != use.name for value in other.arguments.values()}
    return any(str(value) in given for record in found.records for value in record.values())


def _of_use(use: Use, item: Profile | None, demanded: Demand | None) -> str:
    made = as_made(use)
    if made.failed:
        told = _of_failure(made)
    elif demanded is None or made is not use:
        told = _of_result(made, item)
    else:
        told = _of_demanded(made, item, demanded)
    return told if made is use else f"A person changed the arguments.\n\n{told}"


def _of_demanded(use: Use, item: Profile | None, demanded: Demand) -> str:
    found = listing(parse(use.result or ""))
    is_change = item is not None and item.effect == "change"
    if found is None or is_change:
        told, left = _of_result(use, item), unapplied(demanded, all_words=is_change)
    else:
        sifted = sift(found, demanded)
        told, left = _of_result(use, item, sifted), sifted.unapplied
    return f"{told}\n\nI did not apply {enumeration(left)}." if left else told


def _of_failure(use: Use) -> str:
    given = scope(use.arguments)
    called = f"`{use.name}`{f' ({given})' if given else ''}"
    if (reason := rejection(use)) is not None:
        return f"{called} was not run: {rejected(reason)}"
    return f"{called} failed: {_one_paragraph(use.result or '')}"


def _of_result(use: Use, item: Profile | None, sifted: Sifted | None = None) -> str:
    value = parse(use.result or "")
    if item is not None and item.effect == "change":
        return _of_change(item, value, use.arguments)
    found = sifted.found if sifted else listing(value)
    limits = ", ".join(filter(None, [scope(_telling(use, item)), *(sifted.applied if sifted else ())]))
    if found is not None and (item is None or item.effect == "list" or not use.arguments):
        return _of_listing(found, _noun(use.name), limits)
    if sifted and sifted.applied:
        return f"{_heading(use.name, use.arguments)} ({', '.join(sifted.applied)}):\n\n{render_listing(sifted.found)}"
    if isinstance(value, dict | list) and value:
        return f"{_heading(use.name, use.arguments)}:\n\n{render(value)}"
    return render(value) if value not in ("", [], {}) else f"`{use.name}` returned nothing."


def _telling(use: Use, item: Profile | None) -> dict[str, Any]:
    """The arguments that say which things are listed. A limit that all of them stay below says nothing."""
    found = listing(parse(use.result or ""))
    if item is None or found is None or found.total > len(found.records):
        return dict(use.arguments)
    limits = {each.name for each in item.properties if is_limit(each)}
    most = len(found.records)
    return {name: value for name, value in use.arguments.items() if name not in limits or value <= most}


def _of_listing(found: Listing, noun: str, given: str) -> str:
    limits = f" ({given})" if given else ""
    if not found.records:
        return f"No {noun} found{limits}."
    count = f"{found.total} {_one(noun) if found.total == 1 else noun}"
    return f"{count}{limits}:\n\n{render(list(found.records)) if not found.facts else _with_facts(found)}"


def _one(noun: str) -> str:
    return f"{noun.removesuffix('ies')}y" if noun.endswith("ies") else noun.removesuffix("s")


def _with_facts(found: Listing) -> str:
    return render({**found.facts, "entries": list(found.records)})


def scope(arguments: Mapping[str, Any]) -> str:
    """Arguments in words, on one line."""
    return ", ".join(f"{spaced(name).lower()} {inline(value)}" for name, value in arguments.items())


def _verb_and_noun(tool: str) -> tuple[str, str]:
    """The parts of a tool's name: `list_pull_requests` is "list" and "pull requests"."""
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


def _of_change(item: Profile, value: Any, arguments: Mapping[str, Any]) -> str:
    """What was done, in the tool's words where it has any, and the state things are in now."""
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


def rejected(reason: str) -> str:
    """What is said about something that a person did not allow."""
    return f"a person rejected it. The reason: {_sentence(reason)}" if reason else "a person rejected it."


def canceled(title: str, reason: str, *, alone: bool = True) -> str:
    """What is said about a form that a person did not want to fill in. `alone`: nothing else was asked for."""
    why = f" ({reason.rstrip('.')})" if reason else ""
    return (
        f"The form “{title}” was canceled{why}, so {'nothing' if alone else 'that'} was {'' if alone else 'not '}done."
    )


def without_refusals(answer: str) -> str:
    """An answer without what people did not want done: nothing that is left to do can be about that."""
    return "\n\n".join(part for part in answer.split("\n\n") if not _REFUSAL.match(part))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _one_paragraph(text: str) -> str:
    return " ".join(text.split()) or _NO_REASON


def missing_detail(tool: str, properties: Sequence[Property], options: Sequence[str] = ()) -> str:
    wanted = " and ".join(map(_described, properties))
    choice = f" There are: {', '.join(options)}." if options else ""
    return f"For `{tool}` I need {wanted}; the request does not say.{choice}"


def _described(item: Property) -> str:
    explanation = f" ({item.description.rstrip('.')})" if item.description else ""
    return f"the {spaced(item.name).lower()}{explanation}"


def nothing_fits(profiles: Sequence[Profile]) -> str:
    lines = [f"- `{item.name}`: {_first_sentence(item.tool.description)}" for item in profiles[:20]]
    return "\n".join([f"{_NOTHING_FITS} I can use:", "", *lines])


def could_not_help(result: str) -> bool:
    """Whether an agent only says that it cannot do what it was asked."""
    return result.lstrip().startswith((_NOTHING_FITS, _NO_TOOLS))


_NO_REASON = "no reason was given."
_NOTHING_FITS = "None of my tools fits this request."
_NO_TOOLS = "I have no tools at the moment, so I cannot look anything up or change anything."
_REASON = re.compile(r"\bno tools\b[^:.\n]*:\s*(?P<reason>[^\n]+?[.!])(?=\s|$)")
STOPPED_EARLY = "I had to stop here, before I could be sure that everything was done."
NOTHING_GATHERED = "I had to stop before anything was gathered."


def no_tools(instructions: str) -> str:
    """What an agent without tools says, with the reason if its instructions give one."""
    reason = _REASON.search(instructions)
    return f"{_NO_TOOLS} The reason: {reason['reason']}" if reason else _NO_TOOLS


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
