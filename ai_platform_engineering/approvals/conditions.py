"""Conditions on a call's arguments: regular expressions by argument, as a manifest writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator


def _compiled(pattern: Any) -> Any:
    if not isinstance(pattern, str):
        raise ValueError("must be text; put the value in quotes")
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None


Pattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
"""A regular expression, searched for without regard to case."""

Conditions = Mapping[str, re.Pattern[str]]
"""Patterns by argument. The conditions hold if one argument's value has a match."""


def matching_argument(conditions: Conditions, args: Mapping[str, Any]) -> str | None:
    """The first argument whose value has a match; a list or an object has one if a value in it has."""
    for name, pattern in conditions.items():
        if any(pattern.search(text) for text in _texts(args.get(name))):
            return name
    return None


def _texts(value: Any) -> Iterator[str]:
    match value:
        case None:
            return
        case str():
            yield value
        case bool():
            yield str(value).lower()
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)
        case _:
            yield str(value)
