"""The rows as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from benchmarks.rows import Row, by_subject

_VERDICTS: Final = {True: "[green]met[/]", False: "[red]not met[/]", None: ""}


def tables(rows: Sequence[Row]) -> list[Table]:
    provider, requests, stores, knowledge, skills, own_code = by_subject(rows)
    found = []
    if provider:
        title = "Costs with a model provider over HTTP, compared with a plain create_deep_agent graph"
        found.append(_table(title, provider, "vs. plain graph"))
    if requests:
        title = "Costs, compared with a plain create_deep_agent graph with the same scripted model"
        found.append(_table(title, requests, "vs. plain graph"))
    if stores:
        found.append(_table("Stores and replicas, compared with memory or one replica", stores, "ratio"))
    if knowledge:
        found.append(_table("The knowledge base", knowledge))
    if skills:
        found.append(_table("Skills, compared with deepagents' SkillsMiddleware over the same folders", skills))
    if own_code:
        found.append(_table("Own code in place of a library", own_code))
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
