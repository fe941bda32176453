"""Fields of results: which one has a word for its value, which tells a time, a number or an order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ai_platform_engineering.offline_model.language import identifier_words, singular, stem, words
from ai_platform_engineering.offline_model.rendering import label
from ai_platform_engineering.offline_model.timeframes import moment
from ai_platform_engineering.offline_model.vocabulary import CREATED, UPDATED, word_set

Record = Mapping[str, Any]

_MAX_VALUE = 60
_PERSON = re.compile(r"[A-Z][\w'’-]+(?: [A-Z][\w'’.-]+){1,2}")
_STATE_FIELDS = word_set("status state phase")
_CLOSED = word_set("done closed resolved merged finished completed cancelled canceled")
_HAPPENINGS = (
    (word_set("closed resolved finished completed fixed merged"), (word_set("closed resolved merged"), UPDATED)),
    (word_set("deployed deployment deployments released shipped rolled"), (word_set("deployed released"),)),
    (word_set("pushed committed"), (word_set("pushed committed"),)),
    (UPDATED, (UPDATED,)),
    (CREATED, (CREATED,)),
)
"""What happens to things, and the words in the names of fields that tell when, the best first."""
_VALIDITY = word_set("until end ends due deadline expire expires expiring expiry valid till")
"""What is still to come for things: neither their fields nor questions with these words tell what has happened."""
_SCALE = (
    "lowest", "trivial", "low", "minor", "medium", "normal",
    "high", "major", "highest", "urgent", "critical", "blocker",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on one field: that it has a value, or is empty if there is none."""

    field: str
    value: str
    holds: Callable[[Record], bool]

    @property
    def label(self) -> str:
        return label(self.field).lower()


@dataclass(frozen=True)
class Fields:
    records: Sequence[Record]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(key) for record in self.records for key in record))

    def value(self, phrase: str) -> Test | None:
        """The condition that a field has a phrase for its value."""
        wanted = _normal(phrase)
        for key in self.names:
            for value in (value for record in self.records for value in _texts(record.get(key))):
                if wanted in _forms(value):
                    return _has(key, wanted, value)
        return self._state(wanted)

    def _state(self, wanted: str) -> Test | None:
        """Things are open or closed by whatever words a field has for it."""
        key = next((key for key in self.names if key.lower() in _STATE_FIELDS), None)
        if key is None or (wanted not in _CLOSED and wanted != "open"):
            return None

        def holds(record: Record) -> bool:
            return bool(_all(record.get(key)) & _CLOSED) is (wanted != "open")

        return Test(key, wanted, holds) if wanted == "open" or any(map(holds, self.records)) else None

    def named(self, phrase: str) -> str | None:
        """The field that a phrase names."""
        spoken = [stem(word) for word in words(phrase)]
        for key in self.names:
            own = [stem(word) for word in identifier_words(key)]
            if own == spoken or (spoken and own[-1:] == spoken) or key.lower() == phrase.lower():
                return key
        return None

    def is_name(self, phrase: str) -> bool:
        """Whether a phrase is all of a field's name."""
        return any(_normal(key) == _normal(phrase) for key in self.names)

    def blank(self, phrase: str) -> Test | None:
        """The condition that a field is empty: "without an assignee", "not assigned"."""
        base = phrase.lower().removesuffix("ed").removesuffix("e")
        key = self.named(phrase) or next(
            (key for key in self.names if len(base) > 3 and key.lower().startswith(base)), None
        )
        return Test(key, "", lambda record: not record.get(key)) if key else None

    def equals(self, key: str, value: str) -> Test | None:
        """The condition that a field of few short values has one, whether or not any record does."""
        if not all(_texts(record.get(key)) or not record.get(key) for record in self.records):
            return None
        return _has(key, _normal(value), value)

    def time(self, text: str) -> str | None:
        """The field that tells when what a text speaks of has happened to things."""
        timed = [key for key in self.names if self._is_timed(key)]
        spoken = set(words(text))
        if _VALIDITY & spoken:
            return None
        for verbs, fields in _HAPPENINGS:
            if verbs & spoken:
                return next((key for each in fields for key in timed if each & set(identifier_words(key))), None)
        for each in (CREATED, frozenset({*UPDATED, "at", "date", "time"})):
            if key := next((key for key in timed if each & set(identifier_words(key))), None):
                return key
        return timed[0] if len(timed) == 1 else None

    def _is_timed(self, key: str) -> bool:
        values = [record.get(key) for record in self.records if record.get(key) is not None]
        is_past = not _VALIDITY & set(identifier_words(key))
        return bool(values) and is_past and all(moment(value) is not None for value in values)

    def amount(self, phrase: str) -> tuple[str, Callable[[Record], float | None]] | None:
        """The field that counts what a phrase speaks of: a number, or a list."""
        spoken = {stem(word) for word in words(phrase)}
        scored = [
            (len(spoken & own), -len(own), key)
            for key in self.names
            if (own := {stem(word) for word in identifier_words(key)}) & spoken
            and any(_amount(record.get(key)) is not None for record in self.records)
        ]
        best = max(scored, default=None)
        return None if best is None else (best[2], lambda record: _amount(record.get(best[2])))

    def ordering(self, wanted: str, text: str) -> str | None:
        """The field to order by: one that is named, or the time."""
        if wanted in {"time", "date", "age"}:
            return self.time(text)
        if wanted in UPDATED | CREATED:
            return self.time(wanted) or self.named(wanted)
        if wanted == "name":
            return self.named("name") or self.named("title") or self.named("key")
        if wanted == "priority":
            return self.named("priority") or self.named("urgency") or self.named("severity")
        return self.named(wanted)

    def is_scale(self, key: str) -> bool:
        return any(str(record.get(key)).lower() in _SCALE for record in self.records)

    def rank(self, record: Record, key: str) -> tuple[int, float, str]:
        """Where a record stands by a field: scales by their meaning, numbers and times by size, the rest by name."""
        value = record.get(key)
        if value is None:
            return (0, 0.0, "")
        if isinstance(value, int | float):
            return (1, float(value), "")
        text = str(value).lower()
        return (1, float(_SCALE.index(text)), "") if text in _SCALE else (1, 0.0, text)


def _has(key: str, wanted: str, said: str) -> Test:
    return Test(key, said, lambda record: wanted in _all(record.get(key)))


def _amount(value: Any) -> float | None:
    if isinstance(value, list):
        return float(len(value))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [
        each
        for each in values
        if isinstance(each, str) and 0 < len(each) <= _MAX_VALUE and "://" not in each and moment(each) is None
    ]


def _all(value: Any) -> frozenset[str]:
    return frozenset(form for each in _texts(value) for form in _forms(each))


def _forms(value: str) -> Iterator[str]:
    """How people say a value: as it is, a person by a part of the name, a path by its last part."""
    yield _normal(value)
    if _PERSON.fullmatch(value):
        yield from map(_normal, value.split())
    elif "/" in value:
        yield _normal(value.rsplit("/", 1)[1])


def _normal(text: str) -> str:
    return " ".join(map(_one, identifier_words(text.removesuffix("'s").removesuffix("’s"))))


def _one(word: str) -> str:
    return f"{word[:-3]}y" if len(word) > 4 and word.endswith("ies") else singular(word)
