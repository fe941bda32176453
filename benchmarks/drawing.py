"""Bars and lines as SVG, for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 760
BAR_STEP: Final = 34
LINES_HEIGHT: Final = 190
_LEFT: Final = 190
_BAR: Final = 22
_NUMBER_HEIGHT: Final = 12
_NUMBER_ABOVE: Final = 8
_NUMBER_BELOW: Final = 16
_TWO_DIGITS: Final = 10

# Middle tones, which can be read on white and on black: a picture is not told which of them its page is.
_STYLE: Final = """\
text{font:13px system-ui,sans-serif;fill:#737d88}.title{font-weight:600}.small{font-size:11px}
text.number{font-size:11px;stroke:none}.axis{stroke:#8c959f;stroke-width:1}.line{fill:none;stroke-width:2}"""


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that is made of parts, in order, as (kind, size)."""

    label: str
    parts: tuple[tuple[str, float], ...]

    @property
    def total(self) -> float:
        return sum(size for _, size in self.parts)


@dataclass(frozen=True, slots=True)
class Curve:
    """`label` stands at the end of the line: without one its kind does, with an empty one nothing."""

    kind: str
    points: tuple[tuple[int, float], ...]
    label: str | None = None


def picture(description: str, height: float, style: str, parts: Iterable[str]) -> str:
    """`style` has the colours of the kinds that are drawn."""
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(description)}">'
    )
    return "\n".join([opening, f"<style>{_STYLE}\n{style}</style>", *parts, "</svg>"]) + "\n"


def legend(kinds: Mapping[str, str], y: float) -> list[str]:
    drawn: list[str] = []
    x = 0.0
    for kind, label in kinds.items():
        drawn += [
            f'<rect class="{kind}" x="{x:.0f}" y="{y - 9:.0f}" width="10" height="10"/>',
            text(x + 14, y, label, "small"),
        ]
        x += 30 + 6.2 * len(label)
    return drawn


def bars(drawn: Sequence[Bar], top: float, *, left: float = 0, width: float = WIDTH, names: float = _LEFT) -> list[str]:
    """Bars in a column of that width, of which `names` is for their labels."""
    scale = (width - names - 70) / max(bar.total for bar in drawn)
    parts: list[str] = []
    for number, bar in enumerate(drawn):
        x, y = left + names, top + number * BAR_STEP
        parts.append(text(x - 8, y + 15, bar.label, anchor="end"))
        for kind, size in bar.parts:
            wide = size * scale
            parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.0f}" width="{wide:.1f}" height="{_BAR}"/>')
            x += wide
        parts.append(text(x + 6, y + 15, f"{bar.total:.{1 if bar.total >= _TWO_DIGITS else 2}f}"))
    return parts


def lines(drawn: Sequence[Curve], title: str, left: float, top: float, width: float) -> list[str]:
    """Lines over the sizes, evenly spaced, with the value at every point."""
    highest = max(cost for curve in drawn for _, cost in curve.points)
    x0, y0 = left + 10, top + LINES_HEIGHT
    tall, wide = LINES_HEIGHT - 50, width - 70
    sizes = sorted({size for curve in drawn for size, _ in curve.points})
    across = {size: x0 + 10 + number / max(len(sizes) - 1, 1) * wide for number, size in enumerate(sizes)}
    parts = [
        text(left, top + 14, title, "title"),
        f'<line class="axis" x1="{x0:.0f}" y1="{y0:.0f}" x2="{x0 + wide + 20:.0f}" y2="{y0:.0f}"/>',
    ]
    for curve in drawn:
        places = [(across[size], y0 - cost / highest * tall) for size, cost in curve.points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="line {curve.kind}" style="fill:none" points="{joined}"/>')
        parts += [f'<circle class="{curve.kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
        parts.append(
            text(places[-1][0] + 8, places[-1][1] + 4, curve.kind if curve.label is None else curve.label, "small")
        )
    for size, x in across.items():
        named = {
            curve.kind: (y0 - cost / highest * tall, cost)
            for curve in drawn
            for place, cost in curve.points
            if place == size
        }
        for kind, y in _number_heights({kind: y for kind, (y, _) in named.items()}, y0).items():
            cost = named[kind][1]
            shown = f"{cost:.{0 if cost >= _TWO_DIGITS else 1}f}"
            parts.append(text(x, y, shown, f"number {kind}", anchor="middle"))
    parts += [text(x, y0 + 16, f"{size:,}", "small", anchor="middle") for size, x in across.items()]
    return parts


def _number_heights(points: Mapping[str, float], floor: float) -> dict[str, float]:
    """Where the values of points above each other are written: the lowest below its point where there is room, the
    others above theirs, moved up where they would cover another point or value.
    """
    order = sorted(points, key=lambda kind: -points[kind])
    placed: dict[str, float] = {}
    below = floor
    if len(order) > 1 and points[order[0]] + _NUMBER_BELOW < floor - 3:
        placed[order[0]] = points[order[0]] + _NUMBER_BELOW
        order = order[1:]
    for kind in order:
        height = min(points[kind] - _NUMBER_ABOVE, below - _NUMBER_HEIGHT)
        for other in sorted(points.values(), reverse=True):
            if other != points[kind] and height - _NUMBER_HEIGHT < other + 3 and other - 3 < height:
                height = other - _NUMBER_ABOVE
        placed[kind] = below = height
    return placed


def text(x: float, y: float, words: str, kind: str = "", *, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
