"""Fields of listed records: which field has a word as a value, and which is a date, a count or a sort key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ai_platform_engineering.offline_model.english.lexical import identifier_words, singular, stem, words
from ai_platform_engineering.offline_model.english.time_ranges import parse_timestamp
from ai_platform_engineering.offline_model.english.vocabulary import CREATED, UPDATED, word_set
from ai_platform_engineering.offline_model.results.rendering import label

Record = Mapping[str, Any]

_MAX_VALUE = 60
_PERSON = re.compile(r"[A-Z][\w'’-]+(?: [A-Z][\w'’.-]+){1,2}")
_STATE_FIELDS = word_set("status state phase")
_CLOSED = word_set("done closed resolved merged finished completed cancelled canceled")
_EVENT_DATES = (
    (word_set("closed resolved finished completed fixed merged"), (word_set("closed resolved merged"), UPDATED)),
    (word_set("deployed deployment deployments released shipped rolled"), (word_set("deployed released"),)),
    (word_set("pushed committed"), (word_set("pushed committed"),)),
    (UPDATED, (UPDATED,)),
    (CREATED, (CREATED,)),
)
"""Words for events, and the words in the names of the matching date fields, the best first."""
_FUTURE_WORDS = word_set("until end ends due deadline expire expires expiring expiry valid till")
"""Words for future dates, in field names and in questions: they do not refer to past events."""
_SCALE = (
    "lowest", "trivial", "low", "minor", "medium", "normal",
    "high", "major", "highest", "urgent", "critical", "blocker",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """A condition on one field: it has `value`, or it is empty if `value` is ""."""

    field: str
    value: str
    holds: Callable[[Record], bool]

    @property
    def label(self) -> str:
        return label(self.field).lower()


@dataclass(frozen=True)
class ResultFields:
    records: Sequence[Record]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(key) for record in self.records for key in record))

    def value(self, phrase: str) -> FieldCondition | None:
        """The condition that some field has the phrase as its value."""
        wanted = _normal(phrase)
        for key in self.names:
            for value in (value for record in self.records for value in _texts(record.get(key))):
                if wanted in _spellings(value):
                    return _has_value(key, wanted, value)
        return self._state(wanted)

    def _state(self, wanted: str) -> FieldCondition | None:
        """The condition that records are open or closed, whatever words their state field uses."""
        key = next((key for key in self.names if key.lower() in _STATE_FIELDS), None)
        if key is None or (wanted not in _CLOSED and wanted != "open"):
            return None

        def holds(record: Record) -> bool:
            return bool(_all_spellings(record.get(key)) & _CLOSED) is (wanted != "open")

        return FieldCondition(key, wanted, holds) if wanted == "open" or any(map(holds, self.records)) else None

    def named(self, phrase: str) -> str | None:
        """The field whose name the phrase is."""
        spoken = [stem(word) for word in words(phrase)]
        for key in self.names:
            own = [stem(word) for word in identifier_words(key)]
            if own == spoken or (spoken and own[-1:] == spoken) or key.lower() == phrase.lower():
                return key
        return None

    def is_name(self, phrase: str) -> bool:
        """Whether the phrase is exactly the name of a field."""
        return any(_normal(key) == _normal(phrase) for key in self.names)

    def empty_condition(self, phrase: str) -> FieldCondition | None:
        """The condition that a field is empty: "without an assignee", "not assigned"."""
        base = phrase.lower().removesuffix("ed").removesuffix("e")
        key = self.named(phrase) or next(
            (key for key in self.names if len(base) > 3 and key.lower().startswith(base)), None
        )
        return FieldCondition(key, "", lambda record: not record.get(key)) if key else None

    def equals(self, key: str, value: str) -> FieldCondition | None:
        """The condition that a field of short values has this value, even if no record has it."""
        if not all(_texts(record.get(key)) or not record.get(key) for record in self.records):
            return None
        return _has_value(key, _normal(value), value)

    def time(self, text: str) -> str | None:
        """The date field of the event that a text mentions, for example its creation."""
        timed = [key for key in self.names if self._is_timed(key)]
        spoken = set(words(text))
        if _FUTURE_WORDS & spoken:
            return None
        for verbs, fields in _EVENT_DATES:
            if verbs & spoken:
                return next((key for each in fields for key in timed if each & set(identifier_words(key))), None)
        for each in (CREATED, frozenset({*UPDATED, "at", "date", "time"})):
            if key := next((key for key in timed if each & set(identifier_words(key))), None):
                return key
        return timed[0] if len(timed) == 1 else None

    def _is_timed(self, key: str) -> bool:
        values = [record.get(key) for record in self.records if record.get(key) is not None]
        is_past = not _FUTURE_WORDS & set(identifier_words(key))
        return bool(values) and is_past and all(parse_timestamp(value) is not None for value in values)

    def amount(self, phrase: str) -> tuple[str, Callable[[Record], float | None]] | None:
        """The field with the amount that a phrase names: a number, or the length of a list."""
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
        """The field to sort by: the named one, or a date."""
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
        """The sort key of a record: scales by meaning, numbers by size, other values as text (also ISO dates)."""
        value = record.get(key)
        if value is None:
            return (0, 0.0, "")
        if isinstance(value, int | float):
            return (1, float(value), "")
        text = str(value).lower()
        return (1, float(_SCALE.index(text)), "") if text in _SCALE else (1, 0.0, text)


def _has_value(key: str, wanted: str, shown: str) -> FieldCondition:
    return FieldCondition(key, shown, lambda record: wanted in _all_spellings(record.get(key)))


def _amount(value: Any) -> float | None:
    if isinstance(value, list):
        return float(len(value))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [
        each
        for each in values
        if isinstance(each, str) and 0 < len(each) <= _MAX_VALUE and "://" not in each and parse_timestamp(each) is None
    ]


def _all_spellings(value: Any) -> frozenset[str]:
    return frozenset(spelling for each in _texts(value) for spelling in _spellings(each))


def _spellings(value: str) -> Iterator[str]:
    """The ways to write a value: as it is, a person by first or last name, a path by its last part."""
    yield _normal(value)
    if _PERSON.fullmatch(value):
        yield from map(_normal, value.split())
    elif "/" in value:
        yield _normal(value.rsplit("/", 1)[1])


def _normal(text: str) -> str:
    return " ".join(map(_singular, identifier_words(text.removesuffix("'s").removesuffix("’s"))))


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if len(word) > 4 and word.endswith("ies") else singular(word)
