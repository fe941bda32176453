"""The plot of the parts of a search, and of its cost by the number of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks import drawing
from benchmarks.drawing import Bar, Curve
from benchmarks.measurements.knowledge import PARTS, STORES
from benchmarks.rows import Row, by_name

_STYLE: Final = """\
.embed{fill:#6e7781}.words{fill:#2f81f7}.vectors{fill:#d29922}.rest{fill:#3b8f8a}
.memory,.SQLite{stroke:#2f81f7;fill:#2f81f7}.disk,.Postgres{stroke:#6e7781;fill:#6e7781}"""


def sizes(rows: Sequence[Row], store: str) -> list[int]:
    """The numbers of chunks with which a store was measured. Empty if it was not measured."""
    names = [row.name.split(".") for row in rows if row.name.startswith(f"knowledge.{store}.")]
    return sorted({int(size) for _, _, size, _ in names})


def bars(rows: Sequence[Row]) -> list[Bar]:
    found = by_name(rows)
    return [
        Bar(
            f"{label}, {size:,} chunks",
            tuple((part, found[f"knowledge.{store}.{size}.{part}"].value) for part in PARTS),
        )
        for store, label in STORES.items()
        for size in sizes(rows, store)
    ]


def curve(rows: Sequence[Row], store: str, what: str, kind: str) -> Curve:
    found = by_name(rows)
    return Curve(kind, tuple((size, found[f"knowledge.{store}.{size}.{what}"].value) for size in sizes(rows, store)))


def svg(rows: Sequence[Row]) -> str:
    drawn = bars(rows)
    top = 60 + len(drawn) * drawing.BAR_STEP
    half = drawing.WIDTH / 2
    space = [curve(rows, "sqlite", "memory", "memory"), curve(rows, "sqlite", "disk", "disk")]
    slow = [curve(rows, store, "p95", label) for store, label in STORES.items() if sizes(rows, store)]
    return drawing.picture(
        "A search of the knowledge base by part, its memory and disk, and how they grow with the number of chunks",
        top + drawing.LINES_HEIGHT + 40,
        _STYLE,
        [
            drawing.text(0, 16, "A search, median, milliseconds", "title"),
            *drawing.legend(PARTS, 36),
            *drawing.bars(drawn, 50),
            *drawing.lines(space, "SQLite: MB by number of chunks", 0, top, half - 20),
            *drawing.lines(slow, "95th percentile by number of chunks, ms", half + 10, top, half - 20),
        ],
    )
