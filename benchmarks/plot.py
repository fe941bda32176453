"""The plot: what a request is made of, as bars, and how its cost grows, as lines. SVG, for light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from benchmarks.rows import Row, by_name

_WIDTH: Final = 760
_LEFT: Final = 190
_BAR: Final = 22
_LINES_HEIGHT: Final = 190

# Middle tones, which can be read on white and on black: a picture is not told which of them its page is.
_STYLE: Final = """\
text{font:13px system-ui,sans-serif;fill:#737d88}.title{font-weight:600}.small{font-size:11px}
.axis{stroke:#8c959f;stroke-width:1}.line{fill:none;stroke-width:2}
.graph{fill:#6e7781}.server{fill:#2f81f7}.log{fill:#d29922}.conversations{fill:#bf5af2}.agent{fill:#2da44e}.supervisor{fill:#3b8f8a}
.bare{stroke:#6e7781;fill:#6e7781}.product{stroke:#2f81f7;fill:#2f81f7}"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One kind of request: its parts in order, as (kind, milliseconds)."""

    label: str
    parts: tuple[tuple[str, float], ...]

    @property
    def total(self) -> float:
        return sum(milliseconds for _, milliseconds in self.parts)


@dataclass(frozen=True, slots=True)
class Curve:
    kind: str
    points: tuple[tuple[int, float], ...]


def bars(rows: Sequence[Row]) -> list[Bar]:
    """A request by where its agent runs and where its events are kept. A part is what it adds to the one before."""
    cpu = {row.name.removeprefix("cpu."): row.value for row in rows if row.name.startswith("cpu.")}
    graph = cpu["graph"]
    server = ("graph", graph), ("server", _added(cpu["memory"], graph))
    return [
        Bar("bare, no server", (("graph", cpu["bare"]),)),
        Bar("product in memory", server),
        Bar(
            "product as it comes",
            (
                *server,
                ("log", _added(cpu["log"], cpu["memory"])),
                ("conversations", _added(cpu["durable"], cpu["log"])),
            ),
        ),
        Bar(
            "in memory, agent remote",
            (("supervisor", _added(cpu["remote"], cpu["remote-agent"])), ("agent", cpu["remote-agent"])),
        ),
    ]


def curves(rows: Sequence[Row], what: str) -> list[Curve]:
    """The cost of a request by the number of `what`."""
    found = by_name(rows)
    sizes = sorted(int(name.split(".")[1]) for name in found if name.startswith(f"{what}.") and name.count(".") == 1)
    return [
        Curve("bare", tuple((size, found[f"{what}.{size}.bare"].value) for size in sizes)),
        Curve("product", tuple((size, found[f"{what}.{size}"].value) for size in sizes)),
    ]


def svg(rows: Sequence[Row]) -> str:
    drawn = bars(rows)
    bars_height = 60 + len(drawn) * (_BAR + 12)
    half = _WIDTH / 2
    height = bars_height + _LINES_HEIGHT + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        'aria-label="CPU per request by part, and how it grows with agents and turns">',
        f"<style>{_STYLE}</style>",
        _text(0, 16, "CPU per request, milliseconds", "title"),
        *_legend(
            {
                "graph": "graph",
                "server": "server, A2A",
                "log": "log",
                "conversations": "conversations",
                "supervisor": "supervisor's process",
                "agent": "agent's process",
            },
            36,
        ),
        *_bars(drawn, 50),
        *_lines(curves(rows, "agents"), "by number of agents", 0, bars_height, half - 20),
        *_lines(curves(rows, "turns"), "by turn of the conversation", half + 10, bars_height, half - 20),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _added(whole: float, before: float) -> float:
    # Two measurements of nearly the same thing may come out the wrong way round.
    return max(whole - before, 0.0)


def _legend(kinds: Mapping[str, str], y: float) -> list[str]:
    drawn: list[str] = []
    x = 0.0
    for kind, label in kinds.items():
        drawn += [
            f'<rect class="{kind}" x="{x:.0f}" y="{y - 9:.0f}" width="10" height="10"/>',
            _text(x + 14, y, label, "small"),
        ]
        x += 30 + 6.2 * len(label)
    return drawn


def _bars(drawn: Sequence[Bar], top: float) -> list[str]:
    scale = (_WIDTH - _LEFT - 70) / max(bar.total for bar in drawn)
    parts: list[str] = []
    for number, bar in enumerate(drawn):
        x, y = float(_LEFT), top + number * (_BAR + 12)
        parts.append(_text(x - 8, y + 15, bar.label, anchor="end"))
        for kind, milliseconds in bar.parts:
            width = milliseconds * scale
            parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{_BAR}"/>')
            x += width
        parts.append(_text(x + 6, y + 15, f"{bar.total:.1f}"))
    return parts


def _lines(drawn: Sequence[Curve], title: str, left: float, top: float, width: float) -> list[str]:
    """Lines over the sizes, evenly spaced, with every point named."""
    highest = max(cost for curve in drawn for _, cost in curve.points)
    x0, y0 = left + 10, top + _LINES_HEIGHT
    tall, wide = _LINES_HEIGHT - 50, width - 70
    parts = [
        _text(left, top + 14, title, "title"),
        f'<line class="axis" x1="{x0:.0f}" y1="{y0:.0f}" x2="{x0 + wide + 20:.0f}" y2="{y0:.0f}"/>',
    ]
    for curve in drawn:
        steps = max(len(curve.points) - 1, 1)
        places = [
            (x0 + 10 + number / steps * wide, y0 - cost / highest * tall)
            for number, (_, cost) in enumerate(curve.points)
        ]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="line {curve.kind}" style="fill:none" points="{joined}"/>')
        for (x, y), (_, cost) in zip(places, curve.points, strict=True):
            parts.append(f'<circle class="{curve.kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
            parts.append(_text(x, y - 8, f"{cost:.0f}", "small", anchor="middle"))
        parts.append(_text(places[-1][0] + 8, places[-1][1] + 4, curve.kind, "small"))
    for number, (size, _) in enumerate(drawn[0].points):
        x = x0 + 10 + number / max(len(drawn[0].points) - 1, 1) * wide
        parts.append(_text(x, y0 + 16, str(size), "small", anchor="middle"))
    return parts


def _text(x: float, y: float, words: str, kind: str = "", *, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
