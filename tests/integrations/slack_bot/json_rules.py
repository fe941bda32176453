"""Rules for JSON, put together from small ones. A violation is reported with its JSON pointer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Surface = Literal["message", "modal", "home"]


@dataclass(frozen=True, slots=True)
class Where:
    """The value that is looked at: its pointer, the surface it is on, the kind of block it is in."""

    pointer: str
    surface: Surface
    block: str = ""

    def at(self, step: str | int) -> Where:
        return replace(self, pointer=f"{self.pointer}/{step}")

    def wrong(self, sentence: str) -> str:
        return f"{sentence} [json-pointer:{self.pointer}]"


Rule = Callable[[Any, Where], Iterator[str]]


def string(longest: int | None = None, shortest: int = 1) -> Rule:
    def rule(value: Any, where: Where) -> Iterator[str]:
        if not isinstance(value, str):
            yield where.wrong("must be a string")
        elif len(value) < shortest:
            yield where.wrong(f"must be more than {shortest - 1} characters")
        elif longest is not None and len(value) > longest:
            yield where.wrong(f"must be less than {longest + 1} characters")
        elif any("\ud800" <= character <= "\udfff" for character in value):
            yield where.wrong("must be valid Unicode")

    return rule


def whole(low: int, high: int) -> Rule:
    def rule(value: Any, where: Where) -> Iterator[str]:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            yield where.wrong(f"must be an integer from {low} to {high}")

    return rule


def truth(value: Any, where: Where) -> Iterator[str]:
    if not isinstance(value, bool):
        yield where.wrong("must be a boolean")


def one_of(*values: Any) -> Rule:
    def rule(value: Any, where: Where) -> Iterator[str]:
        if value not in values:
            yield where.wrong(f"must be one of {', '.join(map(str, values))}")

    return rule


def listed(item: Rule, *, fewest: int = 1, most: int | None = None) -> Rule:
    def rule(value: Any, where: Where) -> Iterator[str]:
        if not isinstance(value, list):
            yield where.wrong("must be an array")
        elif len(value) < fewest:
            yield where.wrong(f"no less than {fewest} items allowed")
        elif most is not None and len(value) > most:
            yield where.wrong(f"no more than {most} items allowed")
        else:
            for place, part in enumerate(value):
                yield from item(part, where.at(place))

    return rule


def record(required: Mapping[str, Rule], optional: Mapping[str, Rule] | None = None, *also: Rule) -> Rule:
    """An object with these keys and no others; `also` is asked when each key is right."""
    rules = {**required, **(optional or {})}

    def rule(value: Any, where: Where) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield where.wrong("must be an object")
            return
        problems = [where.wrong(f"missing required field: {key}") for key in required if key not in value]
        problems += [where.wrong(f"invalid additional property: {key}") for key in value if key not in rules]
        for key, part in value.items():
            problems += rules[key](part, where.at(key)) if key in rules else ()
        yield from problems or [problem for more in also for problem in more(value, where)]

    return rule


def typed(kinds: Mapping[str, Rule]) -> Rule:
    """An object whose `type` says which of the rules it has to keep."""

    def rule(value: Any, where: Where) -> Iterator[str]:
        kind = value.get("type") if isinstance(value, Mapping) else None
        if not isinstance(kind, str) or kind not in kinds:
            yield where.wrong(f"unsupported type: {kind}")
        else:
            rest = {key: part for key, part in value.items() if key != "type"}
            yield from kinds[kind](rest, where)

    return rule


def once(values: Iterable[str], name: str, where: Where) -> Iterator[str]:
    for value, times in Counter(values).items():
        if times > 1:
            yield where.wrong(f"`{name}` {value!r} is used {times} times")
