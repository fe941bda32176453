"""Looking up what an argument names: which listing tells, what to ask it, and what it told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.offline_model.arguments import Filled, fill, from_records, named_by
from ai_platform_engineering.offline_model.conversation import Use
from ai_platform_engineering.offline_model.language import SYNONYM, best_similarity, similarity, stem
from ai_platform_engineering.offline_model.rendering import Listing, identity, listing, parse
from ai_platform_engineering.offline_model.requests import Request
from ai_platform_engineering.offline_model.schemas import Profile, Property
from ai_platform_engineering.offline_model.texts import SEARCH_WORDS, names_something_new
from ai_platform_engineering.offline_model.tools import Call
from ai_platform_engineering.offline_model.vocabulary import CREATE_VERBS

MAX_OPTIONS = 20
_CREATE = frozenset(stem(verb) for verb in CREATE_VERBS)


def with_lookups(
    target: Profile, filled: Filled, request: Request, profiles: Sequence[Profile], uses: Sequence[Use]
) -> Filled:
    """Fill what is missing from things that were looked up for it."""
    given = dict(filled.arguments)
    for item in filled.missing:
        if not _can_be_looked_up(target, item, request):
            continue
        records = _looked_up(target, item, profiles, uses)
        value = from_records(item, records, request, named=target.tool.destructive)
        if value is None and records and not request.may_ask and _may_take_any(target, item):
            value = from_records(item, records[:1], request)
        if value is not None:
            given[item.name] = value
    return fill(target, request, given)


def lookup(target: Profile, filled: Filled, request: Request, profiles: Sequence[Profile]) -> Call | None:
    for item in filled.missing:
        if not _can_be_looked_up(target, item, request):
            continue
        tool = _lookup_tool(target, item, profiles)
        if tool is not None and not (arguments := fill(tool, request)).missing:
            return Call(tool.name, _limits(target, filled, tool, arguments.arguments, request))
    return None


def lookup_names(target: Profile, missing: Sequence[Property], profiles: Sequence[Profile]) -> list[str]:
    tools = [_lookup_tool(target, item, profiles) for item in missing]
    return [tool.name for tool in tools if tool is not None]


def things(target: Profile, item: Property, profiles: Sequence[Profile], uses: Sequence[Use]) -> tuple[str, ...]:
    """What the things that an argument can name are called."""
    records = _looked_up(target, item, profiles, uses)
    return tuple(name for record in records[:MAX_OPTIONS] if (name := identity(record)))


def options(
    target: Profile, missing: Sequence[Property], request: Request, profiles: Sequence[Profile], uses: Sequence[Use]
) -> dict[str, tuple[str, ...]]:
    """All that each argument can name, where a listing told all of it."""
    found: dict[str, tuple[str, ...]] = {}
    for item in missing:
        if item.type != "string" or not _can_be_looked_up(target, item, request):
            continue
        use = _lookup_use(target, item, profiles, uses)
        told = _told(use)
        if use is None or use.arguments or told is None or not 0 < told.total == len(told.records) <= MAX_OPTIONS:
            continue
        names = [named_by(item, record) for record in told.records]
        if None not in names:
            found[item.name] = tuple(dict.fromkeys(map(str, names)))
    return found


def evidence(arguments: Mapping[str, Any], uses: Sequence[Use]) -> list[Mapping[str, Any]]:
    """What the arguments of a call were found by: those of the listings before it, and the things that they name."""
    given = [value for value in arguments.values() if isinstance(value, str | int)]
    listed = [record for use in uses if (told := _told(use)) for record in told.records]
    named = [record for record in listed if any(value in given for value in record.values())]
    return [*(use.arguments for use in uses), *named]


def _can_be_looked_up(target: Profile, item: Property, request: Request) -> bool:
    """Where a person can be asked, nothing is looked up that no listing can tell."""
    return not request.may_ask or not (item.choices or names_something_new(item, target))


def _limits(
    target: Profile, filled: Filled, tool: Profile, arguments: Mapping[str, Any], request: Request
) -> dict[str, Any]:
    """What a lookup is limited to. Words for what is to be done to a thing do not tell which one is meant."""
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


def _may_take_any(target: Profile, item: Property) -> bool:
    """Something new has to go somewhere, and any place will do; what is changed must have been named."""
    return target.verb in _CREATE and not target.tool.destructive and not set(item.words) & set(target.nouns)


def _looked_up(
    target: Profile, item: Property, profiles: Sequence[Profile], uses: Sequence[Use]
) -> Sequence[Mapping[str, Any]]:
    told = _told(_lookup_use(target, item, profiles, uses))
    return told.records if told else ()


def _lookup_use(target: Profile, item: Property, profiles: Sequence[Profile], uses: Sequence[Use]) -> Use | None:
    tool = _lookup_tool(target, item, profiles)
    return next(
        (
            use
            for use in uses
            if tool is not None and use.name == tool.name and use.result is not None and not use.failed
        ),
        None,
    )


def _told(use: Use | None) -> Listing | None:
    return listing(parse(use.result or "")) if use is not None else None


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
