"""Amounts of use: model calls, tokens, cost, runs and run time. They are counted per day in UTC."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final, Self

MAX_COUNT: Final = 2**53
"""The largest count that a report of another process may have."""
MAX_MODELS: Final = 100
MAX_MODEL_NAME: Final = 200

GROUP: Final = "group:"
"""The scope of a group is this and its name. The scope of a person is the `owner` of its principal."""


@dataclass(frozen=True, slots=True)
class Usage:
    """`cached_tokens` are part of `input_tokens`. `cost` is in millionths of the currency.

    The provider of an `unreported` call has reported no tokens, so the call is not part of tokens and cost. An
    `unpriced` call is not part of the cost, because its model has no price.
    """

    calls: int = 0
    unreported: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: int = 0
    runs: int = 0
    run_ms: int = 0

    def __add__(self, other: Self) -> Self:
        # Field by field: ten times as fast as with `astuple`, and every model call adds several times.
        return type(self)(
            self.calls + other.calls,
            self.unreported + other.unreported,
            self.unpriced + other.unpriced,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cost + other.cost,
            self.runs + other.runs,
            self.run_ms + other.run_ms,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def facts(self) -> dict[str, int]:
        """The usage as a JSON object."""
        return {name: getattr(self, name) for name in FIELDS}

    def reported(self) -> dict[str, int]:
        """The counts of an agent's run, for the supervisor. The supervisor knows the prices."""
        return {name: count for name in _REPORTED if (count := getattr(self, name))}

    @classmethod
    def read(cls, reported: Any) -> Self:
        """The counts that `reported` has written. Others are ignored."""
        if not isinstance(reported, Mapping):
            return cls()
        counts = {name: reported.get(name) for name in _REPORTED}
        return cls(**{name: count for name, count in counts.items() if type(count) is int and 0 <= count <= MAX_COUNT})


FIELDS: Final = tuple(field.name for field in fields(Usage))
_REPORTED: Final = ("calls", "unreported", "input_tokens", "output_tokens", "cached_tokens")
NOTHING: Final = Usage()
UNREPORTED: Final = Usage(calls=1, unreported=1)
ONE_RUN: Final = Usage(runs=1)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one scope used of one model on one day. Runs have no model."""

    day: str
    scope: str
    model: str
    usage: Usage

    def facts(self) -> dict[str, Any]:
        return {"day": self.day, "scope": self.scope, "model": self.model, **self.usage.facts()}


def total(usages: Iterable[Usage]) -> Usage:
    return sum(usages, NOTHING)


def read_report(reported: Any) -> dict[str, Usage]:
    """The usage by model in the metadata of an agent's status."""
    if not isinstance(reported, Mapping):
        return {}
    named = ((str(model)[:MAX_MODEL_NAME], Usage.read(counts)) for model, counts in [*reported.items()][:MAX_MODELS])
    return {model: usage for model, usage in named if usage != NOTHING}


def day_of(seconds: float | None = None) -> str:
    """The day in UTC, as `2026-03-01`."""
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def days_before(day: str, count: int) -> str:
    return f"{datetime.fromisoformat(day) - timedelta(days=count):%Y-%m-%d}"


def reset_after(day: str) -> str:
    """The end of the day, for people."""
    return f"{datetime.fromisoformat(day) + timedelta(days=1):%Y-%m-%d %H:%M} UTC"
