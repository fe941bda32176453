"""The rows as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from benchmarks.rows import Row, by_subject

_VERDICTS: Final = {True: "[green]met[/]", False: "[red]not met[/]", None: ""}


def tables(rows: Sequence[Row]) -> list[Table]:
    provider, requests, knowledge, skills = by_subject(rows)
    found = []
    if provider:
        title = "Costs with a model provider over HTTP, beside the bare deepagents graph with ChatOpenAI"
        found.append(_table(title, provider, "against bare"))
    if requests:
        title = "Costs, beside the bare deepagents graph with the same scripted model"
        found.append(_table(title, requests, "against bare"))
    if knowledge:
        found.append(_table("The knowledge base", knowledge))
    if skills:
        found.append(_table("Skills, beside deepagents' SkillsMiddleware over the same folders", skills))
    return found


def _table(title: str, rows: Sequence[Row], ratio: str | None = None) -> Table:
    drawn = Table(title=title)
    for column in ("", "value", ratio, "aim", ""):
        if column is not None:
            drawn.add_column(column, justify="right" if column in ("value", ratio) else "left")
    for row in rows:
        ratios = () if ratio is None else (row.shown_ratio,)
        drawn.add_row(row.label, row.shown_value, *ratios, row.shown_aim, _VERDICTS[row.met])
    return drawn
