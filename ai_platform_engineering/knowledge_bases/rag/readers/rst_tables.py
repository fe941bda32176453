"""Tables of reStructuredText, drawn with lines, and what they are in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

GRID: Final = re.compile(r"\+[-=]+(?:\+[-=]+)*\+$")
SIMPLE: Final = re.compile(r"=+(?: +=+)+$")
_SPANS: Final = re.compile(r"-+(?: +-+)*$")

Rows = list[list[str]]


def grid_rows(lines: Sequence[str]) -> Rows | None:
    """None where cells span several columns or rows: those have no like in Markdown."""
    corners = [position for position, sign in enumerate(lines[0]) if sign == "+"]
    rows: Rows = []
    cells: list[list[str]] = []
    for line in lines[1:]:
        if GRID.match(line):
            if [position for position, sign in enumerate(line) if sign == "+"] != corners:
                return None
            rows.append([" ".join(" ".join(cell).split()) for cell in cells])
            cells = []
        elif len(line) <= corners[-1] or any(line[corner] != "|" for corner in corners):
            return None
        else:
            cells = cells or [[] for _ in corners[1:]]
            for cell, (start, end) in zip(cells, pairwise(corners), strict=True):
                cell.append(line[start + 1 : end].strip())
    return [row for row in rows if row]


def simple_rows(lines: Sequence[str]) -> Rows:
    """The lines between its first and its last border. A row whose first cell is empty goes on with the one before."""
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    bounds = [*starts, None]
    rows: Rows = []
    for line in lines[1:]:
        if not line.strip() or SIMPLE.match(line.strip()) or _SPANS.match(line.strip()):
            continue
        cells = [line[start:end].strip() for start, end in pairwise(bounds)]
        if rows and not cells[0]:
            rows[-1] = [" ".join(filter(None, pair)) for pair in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows


def table(rows: Iterable[Sequence[str]], inline: Callable[[str], str]) -> str:
    """The first row is the head: Markdown has no table without one."""
    written = [[inline(cell).replace("\n", " ").replace("|", "\\|") for cell in row] for row in rows]
    width = max((len(row) for row in written), default=0)
    if not width:
        return ""
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in written]
    return "\n".join((lines[0], "|" + "---|" * width, *lines[1:]))
