"""Lookups: find the value of an argument with a listing tool, and read its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.offline_model.english.lexical import SYNONYM, best_similarity, similarity, stem
from ai_platform_engineering.offline_model.english.requests import RequestText
from ai_platform_engineering.offline_model.english.vocabulary import CREATE_VERBS
from ai_platform_engineering.offline_model.messages.conversation import ToolUse
from ai_platform_engineering.offline_model.messages.tools import PlannedCall
from ai_platform_engineering.offline_model.results.parsing import Listing, identity, listing, parse
from ai_platform_engineering.offline_model.tool_calls.arguments import FilledArguments, fill, from_records, named_by
from ai_platform_engineering.offline_model.tool_calls.schemas import Property, ToolProfile
from ai_platform_engineering.offline_model.tool_calls.text_values import SEARCH_WORDS, names_something_new

MAX_OPTIONS = 20
_CREATE = frozenset(stem(verb) for verb in CREATE_VERBS)


def with_lookups(
    target: ToolProfile,
    filled: FilledArguments,
    request: RequestText,
    profiles: Sequence[ToolProfile],
    uses: Sequence[ToolUse],
) -> FilledArguments:
    """Fill missing arguments from the results of lookups."""
    given = dict(filled.arguments)
    for item in filled.missing:
        if not _can_be_looked_up(target, item, request):
            continue
        records = _looked_up(target, item, profiles, uses)
        value = from_records(item, records, request, named=target.tool.destructive)
        if value is None and records and not request.may_ask and _any_record_will_do(target, item):
            value = from_records(item, records[:1], request)
        if value is not None:
            given[item.name] = value
    return fill(target, request, given)


def lookup(
    target: ToolProfile, filled: FilledArguments, request: RequestText, profiles: Sequence[ToolProfile]
) -> PlannedCall | None:
    for item in filled.missing:
        if not _can_be_looked_up(target, item, request):
            continue
        tool = _lookup_tool(target, item, profiles)
        if tool is not None and not (arguments := fill(tool, request)).missing:
            return PlannedCall(tool.name, _lookup_arguments(target, filled, tool, arguments.arguments, request))
    return None


def lookup_names(target: ToolProfile, missing: Sequence[Property], profiles: Sequence[ToolProfile]) -> list[str]:
    tools = [_lookup_tool(target, item, profiles) for item in missing]
    return [tool.name for tool in tools if tool is not None]


def thing_names(
    target: ToolProfile, item: Property, profiles: Sequence[ToolProfile], uses: Sequence[ToolUse]
) -> tuple[str, ...]:
    """The names of the things that an argument can refer to."""
    records = _looked_up(target, item, profiles, uses)
    return tuple(name for record in records[:MAX_OPTIONS] if (name := identity(record)))


def options(
    target: ToolProfile,
    missing: Sequence[Property],
    request: RequestText,
    profiles: Sequence[ToolProfile],
    uses: Sequence[ToolUse],
) -> dict[str, tuple[str, ...]]:
    """All values of each argument, if a listing without filters returned all of them."""
    found: dict[str, tuple[str, ...]] = {}
    for item in missing:
        if item.type != "string" or not _can_be_looked_up(target, item, request):
            continue
        use = _lookup_use(target, item, profiles, uses)
        listed = _listing_of(use)
        if use is None or use.arguments or listed is None or not 0 < listed.total == len(listed.records) <= MAX_OPTIONS:
            continue
        names = [named_by(item, record) for record in listed.records]
        if None not in names:
            found[item.name] = tuple(dict.fromkeys(map(str, names)))
    return found


def argument_sources(arguments: Mapping[str, Any], uses: Sequence[ToolUse]) -> list[Mapping[str, Any]]:
    """The sources of a call's arguments: the arguments of earlier calls, and the listed records with such a value."""
    given = [value for value in arguments.values() if isinstance(value, str | int)]
    listed = [record for use in uses if (listed := _listing_of(use)) for record in listed.records]
    named = [record for record in listed if any(value in given for value in record.values())]
    return [*(use.arguments for use in uses), *named]


def _can_be_looked_up(target: ToolProfile, item: Property, request: RequestText) -> bool:
    """Whether to look the argument up. If a form can ask for it, only values that a listing can have are looked up."""
    return not request.may_ask or not (item.choices or names_something_new(item, target))


def _lookup_arguments(
    target: ToolProfile, filled: FilledArguments, tool: ToolProfile, arguments: Mapping[str, Any], request: RequestText
) -> dict[str, Any]:
    """The arguments of a lookup, without search terms and words that belong to the change itself."""
    if not request.may_ask:
        return dict(arguments)
    searched = {item.name for item in tool.properties if SEARCH_WORDS & set(item.words)}
    return {
        name: value
        for name, value in arguments.items()
        if name not in searched
        and value not in filled.arguments.values()
        and similarity(stem(str(value)), target.verb or "") < SYNONYM
    }


def _any_record_will_do(target: ToolProfile, item: Property) -> bool:
    """Whether any record will do: as the container of a new thing, but never as the target of a change."""
    return target.verb in _CREATE and not target.tool.destructive and not set(item.words) & set(target.nouns)


def _looked_up(
    target: ToolProfile, item: Property, profiles: Sequence[ToolProfile], uses: Sequence[ToolUse]
) -> Sequence[Mapping[str, Any]]:
    listed = _listing_of(_lookup_use(target, item, profiles, uses))
    return listed.records if listed else ()


def _lookup_use(
    target: ToolProfile, item: Property, profiles: Sequence[ToolProfile], uses: Sequence[ToolUse]
) -> ToolUse | None:
    tool = _lookup_tool(target, item, profiles)
    return next(
        (
            use
            for use in uses
            if tool is not None and use.name == tool.name and use.result is not None and not use.failed
        ),
        None,
    )


def _listing_of(use: ToolUse | None) -> Listing | None:
    return listing(parse(use.result or "")) if use is not None else None


def _lookup_tool(target: ToolProfile, item: Property, profiles: Sequence[ToolProfile]) -> ToolProfile | None:
    """The tool that lists the things that an argument refers to."""
    kinds = [word for word in item.words if word not in {"name", "id", "key", "number"}] or list(target.nouns)
    fitting = [
        (sum(best_similarity(kind, candidate.nouns) for kind in kinds), -len(candidate.nouns), -position, candidate)
        for position, candidate in enumerate(profiles)
        if candidate.effect == "list" and candidate is not target
    ]
    best = max(fitting, key=lambda entry: entry[:3], default=None)
    return best[3] if best is not None and best[0] > 0 else None
