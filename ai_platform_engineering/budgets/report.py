"""The usage of several days as JSON and as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from ai_platform_engineering.budgets.decisions import MICRO, Balance
from ai_platform_engineering.budgets.usage import FIELDS, GROUP, UsageRow
from ai_platform_engineering.identity.principal import KEY_SUBJECT, Principal

HEADER = ("day", "who", "calls", "input tokens", "output tokens", "cached", "cost", "runs", "run time", "not reported")


def usage_facts(
    rows: Iterable[UsageRow], day: str, currency: str, found: Sequence[Balance] = (), warning: str | None = None
) -> dict[str, Any]:
    """The JSON object of `GET /usage`. Costs are in the currency."""
    return {
        "day": day,
        "currency": currency,
        "limits": [balance.facts() for balance in found],
        "warning": warning,
        "usage": [{**row.facts(), "cost": row.usage.cost / MICRO} for row in rows],
    }


def usage_cells(facts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The lines of a table, one for each day and scope, from the JSON object."""
    rows = sorted(facts["usage"], key=_place)
    cells: list[tuple[str, ...]] = [HEADER] if rows else []
    for (day, scope), group in groupby(rows, key=_place):
        some = [*group]
        count = {name: sum(row.get(name, 0) for row in some) for name in FIELDS}
        cells.append(
            (
                day,
                shown_scope(scope),
                f"{count['calls']:,}",
                f"{count['input_tokens']:,}",
                f"{count['output_tokens']:,}",
                f"{count['cached_tokens']:,}",
                f"{count['cost']:,.4f} {facts.get('currency', '')}".rstrip(),
                f"{count['runs']:,}",
                f"{count['run_ms'] // 1000:,} s",
                f"{count['unreported']:,}",
            )
        )
    return cells


def limit_cells(facts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The lines of the limits, from the JSON object."""
    return [
        (
            str(limit["name"]),
            shown_scope(str(limit["scope"])),
            str(limit["kind"]).replace("_", " "),
            f"{limit['used']:,} of {limit['limit']:,}",
            f"{limit['percent']} %",
        )
        for limit in facts["limits"]
    ]


def shown_scope(scope: str) -> str:
    return scope.replace(GROUP, "group ", 1) if scope.startswith(GROUP) else scope or "everybody"


def scopes_named(subject: str) -> tuple[str, ...]:
    """The scopes that a subject may have: as a key or group, or verified by a token or by a bot."""
    return subject, f"token:{subject}", f"statement:{subject}"


def principal_of(scope: str) -> Principal:
    """The principal of a person's scope, without its groups."""
    match scope.partition(":"):
        case ("", _, _):
            return Principal()
        case ("token" | "statement" as verified_by, _, subject):
            return Principal(verified_by, subject)
        case _:
            return Principal("key", scope or KEY_SUBJECT)


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["day"]), str(row["scope"])
