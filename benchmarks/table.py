"""The rows as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from benchmarks.rows import Row

_VERDICTS: Final = {True: "[green]met[/]", False: "[red]not met[/]", None: ""}


def table(rows: Sequence[Row]) -> Table:
    drawn = Table(title="Costs, beside the bare deepagents graph with the same scripted model")
    for column in ("", "value", "against bare", "aim", ""):
        drawn.add_column(column, justify="right" if column in ("value", "against bare") else "left")
    for row in rows:
        drawn.add_row(row.label, row.shown_value, row.shown_ratio, row.shown_aim, _VERDICTS[row.met])
    return drawn
