"""Answers in Markdown, written from what the tools and the agents returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.utils.llm.offline.conversation import Use
from ai_platform_engineering.utils.llm.offline.language import CREATE_VERBS, identifier_words, stem
from ai_platform_engineering.utils.llm.offline.rendering import name_field, parse, records_of, render
from ai_platform_engineering.utils.llm.offline.schemas import Profile, Property
from ai_platform_engineering.utils.llm.offline.tools import Agent

SIGNATURE = (
    "_Answered by the offline model: no language model is configured, so this is matched by words, not understood._"
)


def from_uses(uses: Sequence[Use], profiles: Sequence[Profile], gaps: Sequence[str] = ()) -> str:
    """An agent's answer from the tools it used. A lookup whose result was used for a later call is not repeated."""
    by_name = {item.name: item for item in profiles}
    shown = [use for use in uses if use.result is not None]
    targets = [use for use in shown if not _is_lookup(use, shown, by_name)] or shown
    parts = [_of_use(use, by_name.get(use.name)) for use in targets]
    return "\n\n".join([*parts, *gaps]) or "The tools gave no result."


def _is_lookup(use: Use, uses: Sequence[Use], profiles: Mapping[str, Profile]) -> bool:
    position = uses.index(use)
    values = {str(value) for later in uses[position + 1 :] for value in later.arguments.values()}
    item = profiles.get(use.name)
    if item is None or item.effect != "list" or use.failed or use.result is None:
        return False
    return any(str(value) in values for record in records_of(parse(use.result)) for value in record.values())


def _of_use(use: Use, item: Profile | None) -> str:
    action = " ".join(identifier_words(use.name))
    scope = _scope(use.arguments)
    if use.failed:
        return f"**{use.name}**{f' ({scope})' if scope else ''} failed: {_one_paragraph(use.result or '')}"
    value = parse(use.result or "")
    if item is not None and item.effect == "change":
        return f"{_done(item, value, use.arguments)}\n\n{render(value)}"
    if isinstance(value, list):
        noun = _noun(item, action, len(value))
        head = f"{len(value) if value else 'No'} {noun}{f' ({scope})' if scope else ''}"
        return f"{head}:\n\n{render(value)}" if value else f"{head} found."
    if isinstance(value, dict):
        return f"{_heading(item, action, use.arguments)}:\n\n{render(value)}"
    return render(value) or f"{action.capitalize()} returned nothing."


def _scope(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{' '.join(identifier_words(name))} {value}" for name, value in arguments.items())


def _noun(item: Profile | None, action: str, count: int) -> str:
    words = [word for word in identifier_words(item.name) if stem(word) in item.nouns] if item else [action]
    noun = " ".join(words) or "results"
    return noun.removesuffix("s") if count == 1 else noun


def _heading(item: Profile | None, action: str, arguments: Mapping[str, Any]) -> str:
    noun = _noun(item, action, 0) if item else action
    named = " ".join(str(value) for value in arguments.values() if isinstance(value, str | int))
    return f"{noun[:1].upper()}{noun[1:]}{f' **{named}**' if named else ''}"


def _done(item: Profile, value: Any, arguments: Mapping[str, Any]) -> str:
    noun = _noun(item, item.name, 1)
    if item.verb in {stem(verb) for verb in CREATE_VERBS} and isinstance(value, dict) and (field := name_field(value)):
        return f"Created {noun} **{value[field]}**."
    named = next((str(value) for value in arguments.values() if isinstance(value, str | int)), "")
    verb = next((word for word in identifier_words(item.name) if stem(word) == item.verb), "change")
    return f"Done: {verb} {noun}{f' **{named}**' if named else ''}."


def _one_paragraph(text: str) -> str:
    return " ".join(text.split()) or "no reason was given."


def missing_detail(tool: str, properties: Sequence[Property], options: Sequence[str] = ()) -> str:
    wanted = " and ".join(map(_described, properties))
    choice = f" Known: {', '.join(options)}." if options else ""
    return f"To {' '.join(identifier_words(tool))} I need {wanted}. Please name it.{choice}"


def _described(item: Property) -> str:
    explanation = f" ({item.description.rstrip('.')})" if item.description else ""
    return f"the {' '.join(identifier_words(item.name))}{explanation}"


def nothing_fits(profiles: Sequence[Profile]) -> str:
    lines = [f"- **{item.name}**: {_first_sentence(item.tool.description)}" for item in profiles[:20]]
    return "\n".join(["None of my tools fits this request. I can use:", "", *lines])


def no_tools() -> str:
    return "I have no tools at the moment, so I cannot look anything up or change anything."


def capabilities(agents: Sequence[Agent]) -> str:
    if not agents:
        return "No agents are available at the moment."
    return "\n".join(
        f"- **{agent.title}**: {agent.description}{f' (not available: {agent.no_tools})' if agent.no_tools else ''}"
        for agent in agents
    )


def _first_sentence(text: str) -> str:
    return text.strip().split("\n", 1)[0].split(". ", 1)[0].rstrip(".") + "."


def signed(text: str) -> str:
    return f"{text}\n\n{SIGNATURE}"
