"""Questions and the sections that answer them, from `questions.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

import yaml

_FILE: Final = Path(__file__).with_name("questions.yaml")
_UNRELATED: Final = "unrelated"
_SEPARATOR: Final = " > "


class Place(NamedTuple):
    """A section of a document, identified by its heading."""

    path: str
    heading: str

    @classmethod
    def of(cls, path: str, trail: str) -> Self:
        """`trail` is a trail of headings (`Deploy > Placement`); the last one counts."""
        return cls(path, trail.rpartition(_SEPARATOR)[2])


@dataclass(frozen=True, slots=True)
class Question:
    kind: str
    text: str
    places: frozenset[Place]


def questions() -> list[Question]:
    return [
        Question(kind, text, frozenset(Place.of(*place.split(_SEPARATOR)) for place in places))
        for kind, asked in _read().items()
        if kind != _UNRELATED
        for text, places in asked.items()
    ]


def unrelated() -> list[str]:
    """Questions that no document answers."""
    return list(_read()[_UNRELATED])


def _read() -> dict[str, dict[str, list[str]]]:
    read: dict[str, dict[str, list[str]]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return read
