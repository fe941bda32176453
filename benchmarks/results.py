"""The numbers on the page: the rows of each measurement, with the run that they are from.

They are kept in a file beside this module, so that one measurement can be repeated and the page written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import Machine
from benchmarks.rows import Row

FILE: Final = Path(__file__).with_name("results.json")


@dataclass(frozen=True, slots=True)
class Result:
    machine: Machine
    rows: tuple[Row, ...]


Results = Mapping[str, Result]
"""By the name of the measurement, in the order of the report."""


def load_results() -> dict[str, Result]:
    stored: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: Result(Machine(**result["machine"]), tuple(Row(*row) for row in result["rows"]))
        for name, result in stored.items()
    }


def save_results(results: Results) -> None:
    """One line for each row, so that a difference between two runs can be read."""
    parts = []
    for name, result in results.items():
        rows = ",\n".join(f"  {json.dumps(astuple(row), ensure_ascii=False)}" for row in result.rows)
        machine = json.dumps(asdict(result.machine), ensure_ascii=False)
        parts.append(f'{json.dumps(name)}: {{"machine": {machine},\n "rows": [\n{rows}]}}')
    FILE.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def runs_of(results: Results, names: Iterable[str]) -> str:
    """When these measurements were made, and the load of the machine then."""
    return _sentences(results, names, lambda machine: f"Measured on {machine.date}, {machine.shown_load}")


def machines_of(results: Results) -> str:
    return _sentences(results, results, lambda machine: machine.description)


def _sentences(results: Results, names: Iterable[str], described: Callable[[Machine], str]) -> str:
    """A sentence for each description, with the measurements that it holds for where there are several."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(described(results[name].machine), []).append(name)
    if len(found) == 1:
        return f"{next(iter(found))}."
    return "\n".join(f"- {description}: {', '.join(found[description])}." for description in found)
