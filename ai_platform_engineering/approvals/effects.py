"""The effect of a tool call (it reads, writes or is destructive), and conditions on a call's arguments.

A manifest writes conditions as regular expressions by argument: they make a call destructive, or deny it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BeforeValidator

Effect = Literal["read", "write", "destructive"]
"""`write` adds or changes something; `destructive` may delete or overwrite. In order of severity."""

EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)


def at_most(effect: Effect, limit: object) -> bool:
    """Whether `effect` is at most as severe as `limit`. An unknown limit allows nothing."""
    return limit in EFFECTS and EFFECTS.index(effect) <= EFFECTS.index(limit)


def _compiled(pattern: Any) -> Any:
    if not isinstance(pattern, str):
        raise ValueError("must be text; put the value in quotes")
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None


Pattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
"""A regular expression that is searched case-insensitively."""

Conditions = Mapping[str, re.Pattern[str]]
"""Patterns by argument. The conditions hold if the value of one argument has a match."""


def matching_argument(conditions: Conditions, args: Mapping[str, Any]) -> str | None:
    """The first argument whose value has a match. In lists and objects, every value is searched."""
    for name, pattern in conditions.items():
        if any(pattern.search(text) for text in argument_texts(args.get(name))):
            return name
    return None


def argument_texts(value: Any) -> Iterator[str]:
    """The values in an argument as texts; in lists and objects, every value."""
    match value:
        case None:
            return
        case str():
            yield value
        case bool():
            yield str(value).lower()
        case Mapping():
            for item in value.values():
                yield from argument_texts(item)
        case list() | tuple():
            for item in value:
                yield from argument_texts(item)
        case _:
            yield str(value)
