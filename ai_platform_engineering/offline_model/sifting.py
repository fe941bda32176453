"""Sifting: the results that meet what a request demands, and what of it they cannot tell."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ai_platform_engineering.offline_model.constraints import Comparison, Constraint, without
from ai_platform_engineering.offline_model.demands import Demand, Spoken
from ai_platform_engineering.offline_model.fields import Fields, Record, Test
from ai_platform_engineering.offline_model.rendering import Listing, label
from ai_platform_engineering.offline_model.timeframes import moment, stretch

_MAX_PHRASE = 3
_OPERATORS: Mapping[Comparison, Callable[[float, float], bool]] = {
    "more": operator.gt, "less": operator.lt, "at least": operator.ge, "at most": operator.le, "exactly": operator.eq,
}  # fmt: skip
_LEADS = re.compile(r"^(?:assigned\s+to|owned\s+by|created\s+by|by)\s+", re.I)


@dataclass(frozen=True, slots=True)
class Sifted:
    """The results that are left, what they were chosen by, and what could not be applied to them."""

    found: Listing
    applied: tuple[str, ...] = ()
    unapplied: tuple[str, ...] = ()


def sift(found: Listing, demanded: Demand) -> Sifted:
    """The results that meet a demand. Where there are none, there is nothing to leave out."""
    if not found.records:
        return Sifted(found)
    sieve = _Sieve(Fields(found.records), replace(demanded, now=found.as_of or demanded.now), list(found.records))
    sieve.filter()
    sieve.order()
    if not sieve.applied:
        return Sifted(found, (), tuple(sieve.unapplied))
    if found.total > len(found.records):
        sieve.unapplied.append(f"anything to {found.total - len(found.records)} further results, which were not read")
    left = replace(found, records=tuple(sieve.records), total=len(sieve.records))
    return Sifted(left, tuple(sieve.applied), tuple(sieve.unapplied))


def unapplied(demanded: Demand, *, all_words: bool) -> tuple[str, ...]:
    """What is left of a demand where the result is no list. A question about one thing narrows nothing by its words."""
    kinds = {"time", "comparison", "grouping"} | ({"exclusion", "order", "count"} if all_words else set())
    named = [_quoted(item.phrase) for item in demanded.constraints if item.kind in kinds]
    telling = [word for word in demanded.words if all_words and word.weight == "telling"]
    return (*named, *_runs(demanded.text, telling))


@dataclass(slots=True)
class _Sieve:
    fields: Fields
    demand: Demand
    records: list[Record]
    applied: list[str] = field(default_factory=list)
    unapplied: list[str] = field(default_factory=list)

    def filter(self) -> None:
        for tests in _by_field(self._values()):
            self._keep_any(tests)
            self.applied.append(_said(tests))
        for item in self.demand.constraints:
            match item.kind:
                case "exclusion":
                    self._exclude(item)
                case "time":
                    self._limit_to_time(item)
                case "comparison":
                    self._compare(item)
                case "grouping":
                    self.unapplied.append(_quoted(item.phrase))
                case _:
                    pass

    def _keep(self, holds: Callable[[Record], bool]) -> None:
        self.records = [record for record in self.records if holds(record)]

    def _keep_any(self, tests: Sequence[Test]) -> None:
        self._keep(lambda record: any(test.holds(record) for test in tests))

    def _values(self) -> Iterator[Test]:
        """Words of the request that are values of fields. Several of one field mean any of them."""
        words = [word for word in self.demand.words if word.weight != "empty"]
        left: list[Spoken] = []
        while words:
            size, test = self._first_value(words)
            if test is not None:
                yield test
            elif size == 1 and words[0].weight == "telling" and not self.fields.named(words[0].text):
                left.append(words[0])
            words = words[size:]
        for word in list(left):
            if test := self._beside(word):
                left.remove(word)
                yield test
        self.unapplied += _runs(self.demand.text, left)

    def _first_value(self, words: Sequence[Spoken]) -> tuple[int, Test | None]:
        for size in range(min(_MAX_PHRASE, len(words)), 0, -1):
            run = words[:size]
            is_joined = all(not self.demand.text[one.end : other.start].strip() for one, other in pairwise(run))
            if not is_joined or (size == 1 and self.fields.named(run[0].text)):
                continue
            if size > 1 and self.fields.is_name(" ".join(word.text for word in run)):
                return size, None
            if test := self.fields.value(" ".join(word.text for word in run)) or self._un(run):
                return size, test
        return 1, None

    def _un(self, run: Sequence[Spoken]) -> Test | None:
        """The condition in "unassigned": the field has nothing."""
        word = run[0].text.lower()
        return self.fields.blank(word[2:]) if len(run) == 1 and word.startswith("un") else None

    def _beside(self, word: Spoken) -> Test | None:
        """A value next to the name of its field, though no result has it: "urgent priority"."""
        text = self.demand.text
        before, after = re.search(r"([\w-]+)\W+$", text[: word.start]), re.match(r"\W+([\w-]+)", text[word.end :])
        for match in (after, before):
            if match and (key := self.fields.named(match[1])):
                return self.fields.equals(key, word.text)
        return None

    def _exclude(self, item: Constraint) -> None:
        said, tests = _LEADS.sub("", item.words), list[Test]()
        for part in re.split(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+", said):
            words = part.split()
            spans = [(size, start) for size in range(len(words), 0, -1) for start in range(len(words) - size + 1)]
            named = (" ".join(words[start : start + size]) for size, start in spans)
            test = next((test for phrase in named if (test := self.fields.value(phrase))), None)
            if test is None and (empty := self.fields.blank(words[0] if words else "")):
                self._keep(empty.holds)
                self.applied.append(_said([empty]))
                return
            if test is not None:
                tests.append(test)
        if not tests:
            self.unapplied.append(_quoted(item.phrase))
            return
        self._keep(lambda record: not any(test.holds(record) for test in tests))
        self.applied += [_said(of_field, denied=True) for of_field in _by_field(tests)]

    def _limit_to_time(self, item: Constraint) -> None:
        wanted = stretch(item.phrase, self.demand.now)
        denied = [other for other in self.demand.constraints if other.kind == "exclusion"]
        key = self.fields.time(without(self.demand.text, denied))
        if wanted is None or key is None or (wanted.start is not None and wanted.start > self.demand.now):
            self.unapplied.append(f"{_quoted(item.phrase)} (the results do not tell that time)")
            return

        def holds(record: Record) -> bool:
            when = moment(record.get(key))
            return when is not None and wanted.contains(when)

        self._keep(holds)
        self.applied.append(f"{label(key).lower()} {wanted}")

    def _compare(self, item: Constraint) -> None:
        amount = self.fields.amount(item.words)
        number, comparison = item.number, item.comparison
        if amount is None or number is None or comparison is None:
            self.unapplied.append(_quoted(item.phrase))
            return
        key, read = amount

        def holds(record: Record) -> bool:
            value = read(record)
            return value is not None and _OPERATORS[comparison](value, number)

        self._keep(holds)
        than = f"{comparison} than" if comparison in {"more", "less"} else comparison
        self.applied.append(f"{label(key).lower()} {than} {number:g}")

    def order(self) -> None:
        for item in self.demand.constraints:
            if item.kind not in {"order", "count"}:
                continue
            if item.words and not self._sort(item):
                self.unapplied.append(_quoted(item.phrase))
                continue
            if item.number is not None:
                self.records = self.records[: int(item.number)]
                self.applied.append(f"only {int(item.number)}")

    def _sort(self, item: Constraint) -> bool:
        key = self.fields.ordering(item.words.lower(), self.demand.text)
        if key is None:
            return False
        descending = self.fields.is_scale(key) if item.descending is None else item.descending
        self.records = sorted(self.records, key=lambda record: self.fields.rank(record, key), reverse=descending)
        self.applied.append(f"ordered by {label(key).lower()}{', descending' if descending else ''}")
        return True


def _by_field(tests: Iterable[Test]) -> list[list[Test]]:
    found: dict[str, list[Test]] = {}
    for test in tests:
        found.setdefault(test.field, []).append(test)
    return list(found.values())


def _said(tests: Sequence[Test], *, denied: bool = False) -> str:
    """Conditions on one field in words."""
    values = " or ".join(dict.fromkeys(test.value for test in tests))
    return f"{tests[0].label} {'not ' if denied else ''}{values}" if values else f"no {tests[0].label}"


def _quoted(phrase: str) -> str:
    return f"“{' '.join(phrase.split())}”"


def _runs(text: str, words: Sequence[Spoken]) -> list[str]:
    """Words as they stand in the text, neighbours together."""
    runs: list[tuple[int, int]] = []
    for word in words:
        if runs and not text[runs[-1][1] : word.start].strip():
            runs[-1] = (runs[-1][0], word.end)
        else:
            runs.append((word.start, word.end))
    return [_quoted(text[start:end]) for start, end in runs]
