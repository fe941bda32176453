"""What is reported: one row for each number, with its ratio, its aim, and whether that is met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

Of = Literal["value", "ratio"]


@dataclass(frozen=True, slots=True)
class Aim:
    """The value, or the ratio, is at most `limit`; with `at_least`, it is not less."""

    limit: float
    of: Of = "value"
    at_least: bool = False

    @property
    def sign(self) -> str:
        return "≥" if self.at_least else "≤"

    def is_met(self, reached: float) -> bool:
        return reached >= self.limit if self.at_least else reached <= self.limit


AIMS: Final[Mapping[str, Aim]] = MappingProxyType(
    {
        **{f"provider.{streams}.product.call": Aim(0.6, "ratio") for streams in (1, 8, 32)},
        "provider.start.product": Aim(2.5),
        "cpu.memory": Aim(1.0, "ratio"),
        "durable": Aim(1.2),
        "remote": Aim(1.15),
        "start": Aim(2.5),
        "memory.rest": Aim(180),
        "prompt": Aim(40),
        "unreachable": Aim(5),
        "idle.tasks": Aim(150),
        "idle.watchers": Aim(150),
        "slack.first": Aim(500),
        "stores.default": Aim(1.2),
        "takeover.replica.slowest": Aim(5),
        "workers.ratio": Aim(1.7, at_least=True),
        "access.ratio": Aim(1.05),
        "retrieval.alone.ndcg": Aim(1.0),
        "retrieval.alone.recall": Aim(1.0),
    }
)

_DIGITS: Final = {
    "ms": 2,
    "s": 2,
    "x": 2,
    "MB": 0,
    "KB": 1,
    "/s": 1,
    "chunks/s": 0,
    "calls": 0,
    "questions": 0,
    "%": 0,
    "": 3,
}


@dataclass(frozen=True, slots=True)
class Row:
    """`ratio` is the value divided by that of the plain graph; for stores, by that of memory; for a subscriber at
    another replica, by that at the replica that runs the task."""

    name: str
    label: str
    value: float
    unit: str
    ratio: float | None = None

    @property
    def shown_value(self) -> str:
        return _shown(self.value, self.unit)

    @property
    def shown_ratio(self) -> str:
        return "" if self.ratio is None else f"{self.ratio:.2f}x"

    @property
    def shown_aim(self) -> str:
        match AIMS.get(self.name):
            case None:
                return ""
            case Aim(limit, "ratio") as aim:
                return f"{aim.sign} {limit:g}x plain graph"
            case Aim(limit) as aim:
                return f"{aim.sign} {limit:g}{'' if self.unit == 'x' else ' '}{self.unit}"

    @property
    def met(self) -> bool | None:
        aim = AIMS.get(self.name)
        if aim is None:
            return None
        reached = self.ratio if aim.of == "ratio" else self.value
        return reached is not None and aim.is_met(reached)


def by_name(rows: Iterable[Row]) -> dict[str, Row]:
    return {row.name: row for row in rows}


class Subjects(NamedTuple):
    provider: list[Row]
    requests: list[Row]
    stores: list[Row]
    knowledge: list[Row]
    skills: list[Row]
    own_code: list[Row]


_SUBJECTS: Final = {
    "provider": 0,
    **dict.fromkeys(("stores", "takeover", "replicas", "workers", "access"), 2),
    **dict.fromkeys(("retrieval", "knowledge"), 3),
    "skills": 4,
    "own-code": 5,
}
_REQUESTS: Final = 1


def by_subject(rows: Iterable[Row]) -> Subjects:
    found = Subjects([], [], [], [], [], [])
    for row in rows:
        found[_SUBJECTS.get(row.name.partition(".")[0], _REQUESTS)].append(row)
    return found


def _shown(value: float, unit: str) -> str:
    return f"{value:.{_DIGITS[unit]}f}{'' if unit in ('', 'x') else ' '}{unit}"
