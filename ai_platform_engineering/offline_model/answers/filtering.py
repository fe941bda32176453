"""Filtering: apply the criteria of a request to listed results, and report those that could not be applied."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ai_platform_engineering.offline_model.english.constraints import Comparison, Constraint, without_constraints
from ai_platform_engineering.offline_model.english.time_ranges import parse_time_range, parse_timestamp
from ai_platform_engineering.offline_model.results.fields import FieldCondition, Record, ResultFields
from ai_platform_engineering.offline_model.results.parsing import Listing
from ai_platform_engineering.offline_model.results.rendering import label
from ai_platform_engineering.offline_model.tool_calls.criteria import Criteria, RequestWord

_MAX_PHRASE = 3
_OPERATORS: Mapping[Comparison, Callable[[float, float], bool]] = {
    "more": operator.gt, "less": operator.lt, "at least": operator.ge, "at most": operator.le, "exactly": operator.eq,
}  # fmt: skip
_LEADS = re.compile(r"^(?:assigned\s+to|owned\s+by|created\s+by|by)\s+", re.I)


@dataclass(frozen=True, slots=True)
class FilteredListing:
    """The remaining results, with the criteria that were applied and those that could not be."""

    found: Listing
    applied: tuple[str, ...] = ()
    unapplied: tuple[str, ...] = ()


def filter_listing(found: Listing, criteria: Criteria) -> FilteredListing:
    """The results that meet the criteria. An empty listing is returned unchanged."""
    if not found.records:
        return FilteredListing(found)
    listing_filter = _ListingFilter(
        ResultFields(found.records), replace(criteria, now=found.as_of or criteria.now), list(found.records)
    )
    listing_filter.filter()
    listing_filter.order()
    if not listing_filter.applied:
        return FilteredListing(found, (), tuple(listing_filter.unapplied))
    if found.total > len(found.records):
        listing_filter.unapplied.append(
            f"anything to {found.total - len(found.records)} further results, which were not read"
        )
    left = replace(found, records=tuple(listing_filter.records), total=len(listing_filter.records))
    return FilteredListing(left, tuple(listing_filter.applied), tuple(listing_filter.unapplied))


def unapplied(criteria: Criteria, *, all_words: bool) -> tuple[str, ...]:
    """The unapplied criteria for a result that is no listing. Only a change (`all_words`) reports plain words too."""
    kinds = {"time", "comparison", "grouping"} | ({"exclusion", "order", "count"} if all_words else set())
    named = [_quoted(item.phrase) for item in criteria.constraints if item.kind in kinds]
    distinctive = [word for word in criteria.words if all_words and word.weight == "distinctive"]
    return (*named, *_runs(criteria.text, distinctive))


@dataclass(slots=True)
class _ListingFilter:
    fields: ResultFields
    criteria: Criteria
    records: list[Record]
    applied: list[str] = field(default_factory=list)
    unapplied: list[str] = field(default_factory=list)

    def filter(self) -> None:
        for tests in _by_field(self._values()):
            self._keep_any(tests)
            self.applied.append(_in_words(tests))
        for item in self.criteria.constraints:
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

    def _keep_any(self, tests: Sequence[FieldCondition]) -> None:
        self._keep(lambda record: any(test.holds(record) for test in tests))

    def _values(self) -> Iterator[FieldCondition]:
        """Conditions for words of the request that are values of fields. Several of one field mean any of them."""
        words = [word for word in self.criteria.words if word.weight != "empty"]
        left: list[RequestWord] = []
        while words:
            size, test = self._first_value(words)
            if test is not None:
                yield test
            elif size == 1 and words[0].weight == "distinctive" and not self.fields.named(words[0].text):
                left.append(words[0])
            words = words[size:]
        for word in list(left):
            if test := self._next_to_field(word):
                left.remove(word)
                yield test
        self.unapplied += _runs(self.criteria.text, left)

    def _first_value(self, words: Sequence[RequestWord]) -> tuple[int, FieldCondition | None]:
        for size in range(min(_MAX_PHRASE, len(words)), 0, -1):
            run = words[:size]
            is_joined = all(not self.criteria.text[one.end : other.start].strip() for one, other in pairwise(run))
            if not is_joined or (size == 1 and self.fields.named(run[0].text)):
                continue
            if size > 1 and self.fields.is_name(" ".join(word.text for word in run)):
                return size, None
            if test := self.fields.value(" ".join(word.text for word in run)) or self._negated_prefix(run):
                return size, test
        return 1, None

    def _negated_prefix(self, run: Sequence[RequestWord]) -> FieldCondition | None:
        """The condition of words like "unassigned": the field is empty."""
        word = run[0].text.lower()
        return self.fields.empty_condition(word[2:]) if len(run) == 1 and word.startswith("un") else None

    def _next_to_field(self, word: RequestWord) -> FieldCondition | None:
        """The condition for a value next to its field name, even if no result has it: "urgent priority"."""
        text = self.criteria.text
        before, after = re.search(r"([\w-]+)\W+$", text[: word.start]), re.match(r"\W+([\w-]+)", text[word.end :])
        for match in (after, before):
            if match and (key := self.fields.named(match[1])):
                return self.fields.equals(key, word.text)
        return None

    def _exclude(self, item: Constraint) -> None:
        text, tests = _LEADS.sub("", item.words), list[FieldCondition]()
        for part in re.split(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+", text):
            words = part.split()
            spans = [(size, start) for size in range(len(words), 0, -1) for start in range(len(words) - size + 1)]
            named = (" ".join(words[start : start + size]) for size, start in spans)
            test = next((test for phrase in named if (test := self.fields.value(phrase))), None)
            if test is None and (empty := self.fields.empty_condition(words[0] if words else "")):
                self._keep(empty.holds)
                self.applied.append(_in_words([empty]))
                return
            if test is not None:
                tests.append(test)
        if not tests:
            self.unapplied.append(_quoted(item.phrase))
            return
        self._keep(lambda record: not any(test.holds(record) for test in tests))
        self.applied += [_in_words(of_field, negated=True) for of_field in _by_field(tests)]

    def _limit_to_time(self, item: Constraint) -> None:
        wanted = parse_time_range(item.phrase, self.criteria.now)
        negated = [other for other in self.criteria.constraints if other.kind == "exclusion"]
        key = self.fields.time(without_constraints(self.criteria.text, negated))
        if wanted is None or key is None or (wanted.start is not None and wanted.start > self.criteria.now):
            self.unapplied.append(f"{_quoted(item.phrase)} (the results do not state that time)")
            return

        def holds(record: Record) -> bool:
            when = parse_timestamp(record.get(key))
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
        for item in self.criteria.constraints:
            if item.kind not in {"order", "count"}:
                continue
            if item.words and not self._sort(item):
                self.unapplied.append(_quoted(item.phrase))
                continue
            if item.number is not None:
                self.records = self.records[: int(item.number)]
                self.applied.append(f"only {int(item.number)}")

    def _sort(self, item: Constraint) -> bool:
        key = self.fields.ordering(item.words.lower(), self.criteria.text)
        if key is None:
            return False
        descending = self.fields.is_scale(key) if item.descending is None else item.descending
        self.records = sorted(self.records, key=lambda record: self.fields.rank(record, key), reverse=descending)
        self.applied.append(f"ordered by {label(key).lower()}{', descending' if descending else ''}")
        return True


def _by_field(tests: Iterable[FieldCondition]) -> list[list[FieldCondition]]:
    found: dict[str, list[FieldCondition]] = {}
    for test in tests:
        found.setdefault(test.field, []).append(test)
    return list(found.values())


def _in_words(tests: Sequence[FieldCondition], *, negated: bool = False) -> str:
    """Conditions on one field in words."""
    values = " or ".join(dict.fromkeys(test.value for test in tests))
    return f"{tests[0].label} {'not ' if negated else ''}{values}" if values else f"no {tests[0].label}"


def _quoted(phrase: str) -> str:
    return f"“{' '.join(phrase.split())}”"


def _runs(text: str, words: Sequence[RequestWord]) -> list[str]:
    """Words as they appear in the text, adjacent ones joined."""
    runs: list[tuple[int, int]] = []
    for word in words:
        if runs and not text[runs[-1][1] : word.start].strip():
            runs[-1] = (runs[-1][0], word.end)
        else:
            runs.append((word.start, word.end))
    return [_quoted(text[start:end]) for start, end in runs]
