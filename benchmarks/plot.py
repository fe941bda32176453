"""The plot: what a request is made of, as bars, and how its cost grows, as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks import drawing
from benchmarks.drawing import Bar, Curve
from benchmarks.rows import Row, by_name

_STYLE: Final = """\
.graph{fill:#6e7781}.server{fill:#2f81f7}.log{fill:#d29922}.conversations{fill:#bf5af2}.agent{fill:#2da44e}.supervisor{fill:#3b8f8a}
.bare{stroke:#6e7781;fill:#6e7781}.product{stroke:#2f81f7;fill:#2f81f7}"""


def bars(rows: Sequence[Row]) -> list[Bar]:
    """A request by where its agent runs and where its events are kept. A part is what it adds to the one before."""
    cpu = {row.name.removeprefix("cpu."): row.value for row in rows if row.name.startswith("cpu.")}
    graph = cpu["graph"]
    server = ("graph", graph), ("server", _added(cpu["memory"], graph))
    return [
        Bar("plain graph, no server", (("graph", cpu["bare"]),)),
        Bar("product in memory", server),
        Bar(
            "product",
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
        Curve("bare", tuple((size, found[f"{what}.{size}.bare"].value) for size in sizes), "plain"),
        Curve("product", tuple((size, found[f"{what}.{size}"].value) for size in sizes)),
    ]


def svg(rows: Sequence[Row]) -> str:
    drawn = bars(rows)
    bars_height = 60 + len(drawn) * drawing.BAR_STEP
    half = drawing.WIDTH / 2
    return drawing.picture(
        "CPU per request by part, and how it grows with agents and turns",
        bars_height + drawing.LINES_HEIGHT + 40,
        _STYLE,
        [
            drawing.text(0, 16, "CPU per request, milliseconds", "title"),
            *drawing.legend(
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
            *drawing.bars(drawn, 50),
            *drawing.lines(curves(rows, "agents"), "by number of agents", 0, bars_height, half - 20),
            *drawing.lines(curves(rows, "turns"), "by turn of the conversation", half + 10, bars_height, half - 20),
        ],
    )


def _added(whole: float, before: float) -> float:
    # Two measurements of nearly the same thing may come out the wrong way round.
    return max(whole - before, 0.0)
