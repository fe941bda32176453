"""Rows in the tables of docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.rows import Row


def cell(row: Row | None, *, ratio: bool = True) -> str:
    """A row in a cell; empty for one that was not measured."""
    if row is None:
        return ""
    compared = f" ({row.shown_ratio})" if ratio and row.ratio is not None else ""
    return f"{row.shown_value}{compared}{' **not met**' if row.met is False else ''}"


def table(head: Sequence[str], body: Iterable[Sequence[str]], *, names: int = 1) -> str:
    """The first columns are `names`, and the others numbers."""
    lines = [head, [*("---" for _ in head[:names]), *("---:" for _ in head[names:])], *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
