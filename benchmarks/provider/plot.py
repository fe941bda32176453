"""The plot: how CPU, requests per second and memory grow with the number of streams, and the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks import drawing
from benchmarks.drawing import Bar, Curve
from benchmarks.provider.section import sizes
from benchmarks.provider.subjects import LABELS
from benchmarks.rows import Row, by_name

_STYLE: Final = """\
.bare{stroke:#8a6d3b;fill:#a67c2e}.product{stroke:#2f81f7;fill:#2f81f7}.remote{stroke:#2da44e;fill:#2da44e}"""
_GAP: Final = 40
_NAMES: Final = 80
_SHORT: Final = {"bare": "plain graph", "product": "product", "remote": "remote"}


def curves(rows: Sequence[Row], measure: str) -> list[Curve]:
    """A curve for each subject, over the numbers of streams at which it was measured."""
    found = by_name(rows)
    names = {(subject, size): f"provider.{size}.{subject}.{measure}" for subject in LABELS for size in sizes(rows)}
    return [
        Curve(
            subject,
            tuple((size, found[name].value) for (who, size), name in names.items() if who == subject and name in found),
            label="",
        )
        for subject in LABELS
    ]


def svg(rows: Sequence[Row]) -> str:
    half = (drawing.WIDTH - _GAP) / 2
    right, below = half + _GAP, 40 + drawing.LINES_HEIGHT + 50
    return drawing.picture(
        "CPU per request, requests per second and memory per open stream by number of streams, and start to ready",
        below + drawing.LINES_HEIGHT + 40,
        _STYLE,
        [
            *drawing.legend(LABELS, 14),
            *drawing.lines(curves(rows, "request"), "CPU per request by number of streams, ms", 0, 40, half),
            *drawing.lines(curves(rows, "throughput"), "Requests per second by number of streams", right, 40, half),
            *drawing.lines(curves(rows, "memory"), "Memory per stream by open streams, KB", 0, below, half),
            drawing.text(right, below + 14, "Start to ready, seconds", "title"),
            *drawing.bars(_bars(rows, "start"), below + 26, left=right, width=half, names=_NAMES),
            drawing.text(right, below + 122, "Resident with no open stream, MB", "title"),
            *drawing.bars(_bars(rows, "rest"), below + 134, left=right, width=half, names=_NAMES),
        ],
    )


def _bars(rows: Sequence[Row], measure: str) -> list[Bar]:
    found = by_name(rows)
    names = {subject: f"provider.{measure}.{subject}" for subject in _SHORT}
    return [Bar(_SHORT[subject], ((subject, found[name].value),)) for subject, name in names.items() if name in found]
