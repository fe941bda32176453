"""Time ranges: phrases like "last week" or "since Monday", and the range that each means."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_UNITS = r"minutes?|mins?|hours?|hrs?|h|days?|d|weeks?|w|months?|quarters?|years?"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAY = rf"(?:{'|'.join(_WEEKDAYS)})"
_MONTH = rf"(?:{'|'.join(_MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_COUNT = r"(?:\d{1,4}|an?|one|two|three|four|five|six|seven|ten|(?:a\s+)?couple(?:\s+of)?|(?:a\s+)?few)"
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3,
    "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10,
}  # fmt: skip
_DATE = (
    r"(?:\d{4}-\d\d-\d\d"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:\s+\d{{4}})?"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?)"
)
_POINT = (
    rf"(?:(?:the\s+)?day\s+before\s+yesterday|yesterday|today|tomorrow|tonight|now|{_DATE}|{_COUNT}\s+(?:{_UNITS})\s+ago"
    rf"|(?:the\s+)?(?:start|beginning)\s+of\s+(?:the|this)\s+(?:week|month|quarter|year)"
    rf"|(?:this|last|next|previous)\s+(?:week(?:end)?|month|quarter|year|{_WEEKDAY}|{_MONTH})|{_WEEKDAY}|{_MONTH}(?:\s+\d{{4}})?)"
)
_PATTERNS = (
    rf"\b(?:between|from)\s+(?P<from>{_POINT})\s+(?:and|to|until|till)\s+(?P<to>{_POINT})\b",
    rf"\b(?:for\s+)?(?P<than>older|newer|younger|more|less)\s+than\s+(?P<than_count>{_COUNT})\s+(?P<than_unit>{_UNITS})"
    r"(?:\s+(?:old|ago))?\b",
    rf"\b(?:(?:in|within|during|over|from|for)\s+)?(?:the\s+)?(?:last|past|previous)\s+(?P<count>{_COUNT})\s+(?P<unit>{_UNITS})\b",
    r"\b(?:(?:in|within|during|over|from)\s+)?(?:the\s+)?past\s+(?P<one>hour|day|week|month|quarter|year)\b",
    r"\b(?:in|within|during|over)\s+the\s+last\s+(?P<last>hour|day|week|month|quarter|year)\b",
    rf"\bin\s+(?P<ahead_count>{_COUNT})\s+(?P<ahead_unit>{_UNITS})\b",
    rf"\b(?P<open>since|after|starting|before|until|till|prior\s+to)\s+(?P<bound>{_POINT})\b",
    rf"\b(?:(?:on|in|during|from|of|for|at|by)\s+)?(?:the\s+)?(?P<relative>(?:this|last|next|previous)\s+(?:week(?:end)?|month|quarter|year|{_WEEKDAY}|{_MONTH})|this\s+(?:morning|afternoon|evening))\b",
    rf"\b(?:(?:on|from|of|for|by)\s+)?(?P<day>(?:the\s+)?day\s+before\s+yesterday|yesterday|today|tomorrow|tonight|{_DATE}|{_COUNT}\s+(?:{_UNITS})\s+ago)(?:['’]s)?\b",
    rf"\b(?:on|by)\s+(?P<weekday>{_WEEKDAY})s?\b",
    rf"\b(?:in|during|of|from)\s+(?P<month>{_MONTH}(?:\s+\d{{4}})?)\b",
)
PHRASE = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.I)
"""A phrase for a time range."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A half-open time range: `start` is included, `end` is not; None is unbounded."""

    start: datetime | None
    end: datetime | None

    def contains(self, instant: datetime) -> bool:
        return (self.start is None or instant >= self.start) and (self.end is None or instant < self.end)

    def __str__(self) -> str:
        if self.start is None or self.end is None:
            edge = "since" if self.end is None else "before"
            return f"{edge} {_formatted(self.start or self.end)}"
        last = self.end - timedelta(days=1)
        if not _is_midnight(self.start) or not _is_midnight(self.end):
            return f"{_formatted(self.start)} to {_formatted(self.end)}"
        return f"{self.start:%Y-%m-%d}" if last == self.start else f"{self.start:%Y-%m-%d} to {last:%Y-%m-%d}"


def parse_time_range(phrase: str, now: datetime) -> TimeRange | None:
    """The time range of a phrase, relative to `now`; None for a date that does not exist."""
    match = PHRASE.search(phrase)
    if match is None:
        return None
    found = {name: value for name, value in match.groupdict().items() if value}
    try:
        return _time_range(found, now.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def parse_timestamp(value: object) -> datetime | None:
    """The timestamp in a field of a result; None if it contains none."""
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)", value):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _time_range(found: dict[str, str], now: datetime) -> TimeRange:
    if one := found.get("one") or found.get("last"):
        found = {"count": "1", "unit": one}
    match found:
        case {"from": first, "to": last}:
            return TimeRange(_point(first, now).start, _point(last, now).end)
        case {"than": than, "than_count": count, "than_unit": unit}:
            edge = _back(now, count, unit)
            return TimeRange(None, edge) if than.lower() in {"older", "more"} else TimeRange(edge, None)
        case {"count": count, "unit": unit}:
            return TimeRange(_back(now, count, unit), None)
        case {"ahead_count": count, "ahead_unit": unit}:
            return TimeRange(now + (now - _back(now, count, unit)), None)
        case {"open": edge, "bound": bound}:
            return _open(edge.lower(), _point(bound, now))
    return _point(next(iter(found.values())), now)


def _open(edge: str, point: TimeRange) -> TimeRange:
    match edge:
        case "since" | "starting":
            return TimeRange(point.start, None)
        case "after":
            return TimeRange(point.end, None)
        case "until" | "till":
            return TimeRange(None, point.end)
        case _:
            return TimeRange(None, point.start)


def _point(text: str, now: datetime) -> TimeRange:
    """The range of the day, week, month or year that a text names."""
    spoken = re.sub(r"^the\s+", "", " ".join(text.lower().split()))
    for pattern, read in _POINTS:
        if match := re.fullmatch(pattern, spoken):
            return read(match, now)
    return _days(_date(spoken, _midnight(now)))


def _ago(match: re.Match[str], now: datetime) -> TimeRange:
    back = _back(now, match["count"], match["unit"])
    return TimeRange(back, now) if match["unit"].startswith(("h", "min")) else _days(_midnight(back))


def _weekend(match: re.Match[str], now: datetime) -> TimeRange:
    today = _midnight(now)
    saturday = today - timedelta(days=today.weekday() - 5)
    weeks = {"this": 0, "next": 1}.get(match["which"], -1 if saturday > today else 0)
    return _days(saturday + timedelta(weeks=weeks), 2)


_DAYS = {"today": 0, "tonight": 0, "yesterday": -1, "day before yesterday": -2, "tomorrow": 1}
_OFFSETS = {"this": 0, "next": 1, "last": -1, "previous": -1}
_WHICH = r"(?P<which>this|last|next|previous)"
_POINTS: tuple[tuple[str, Callable[[re.Match[str], datetime], TimeRange]], ...] = (
    ("now", lambda _, now: TimeRange(now, now)),
    ("|".join(_DAYS), lambda match, now: _days(_midnight(now) + timedelta(days=_DAYS[match.group()]))),
    (rf"(?P<count>{_COUNT}) (?P<unit>{_UNITS}) ago", _ago),
    (
        r"(?:start|beginning) of (?:the|this) (week|month|quarter|year)",
        lambda match, now: _period(match[1], 0, _midnight(now)),
    ),
    (
        rf"{_WHICH} (?P<unit>week|month|quarter|year)",
        lambda match, now: _period(match["unit"], _OFFSETS[match["which"]], _midnight(now)),
    ),
    (rf"{_WHICH} weekend", _weekend),
    (r"this (?:morning|afternoon|evening)", lambda _, now: _days(_midnight(now))),
    (
        rf"(?:{_WHICH} )?(?P<day>{_WEEKDAY})",
        lambda match, now: _weekday(match["day"], match["which"] or "", _midnight(now)),
    ),
    (
        rf"(?:{_WHICH} )?(?P<month>{_MONTH})(?: (?P<year>\d{{4}}))?",
        lambda match, now: _month(match["month"], match["year"], _midnight(now)),
    ),
)


def _period(unit: str, offset: int, today: datetime) -> TimeRange:
    match unit:
        case "week":
            start = today - timedelta(days=today.weekday()) + timedelta(weeks=offset)
            return _days(start, 7)
        case "month":
            return _months(today, today.month + offset, 1)
        case "quarter":
            return _months(today, today.month - (today.month - 1) % 3 + 3 * offset, 3)
        case _:
            return _months(today, 1 + 12 * offset, 12)


def _months(today: datetime, first: int, count: int) -> TimeRange:
    def start(number: int) -> datetime:
        return today.replace(year=today.year + (number - 1) // 12, month=(number - 1) % 12 + 1, day=1)

    return TimeRange(start(first), start(first + count))


def _weekday(name: str, which: str, today: datetime) -> TimeRange:
    """The most recent such day, which can be today. "Last Monday" is before today, "next Monday" after."""
    back = (today.weekday() - _WEEKDAYS.index(name)) % 7
    if which == "next":
        return _days(today + timedelta(days=7 - back))
    return _days(today - timedelta(days=back or (7 if which in {"last", "previous"} else 0)))


def _month(name: str, year: str | None, today: datetime) -> TimeRange:
    """The month of the given year, else the most recent one that has begun."""
    number = _month_number(name)
    if year:
        return _months(today.replace(year=int(year)), number, 1)
    return _months(today, number - (12 if number > today.month else 0), 1)


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name[:3].lower()))


def _date(text: str, today: datetime) -> datetime:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    day = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", text)
    month = re.search(_MONTH, text)
    year = re.search(r"\b\d{4}\b", text)
    if day is None or month is None:
        raise ValueError(text)
    found = today.replace(month=_month_number(month[0]), day=int(day[1]))
    if year:
        return found.replace(year=int(year[0]))
    return found if found <= today else found.replace(year=found.year - 1)


_BACK: dict[str, Callable[[datetime, int], datetime]] = {
    "mi": lambda now, count: now - timedelta(minutes=count),
    "h": lambda now, count: now - timedelta(hours=count),
    "d": lambda now, count: now - timedelta(days=count),
    "w": lambda now, count: now - timedelta(weeks=count),
    "mo": lambda now, count: now - timedelta(days=30 * count),
    "q": lambda now, count: now - timedelta(days=91 * count),
    "y": lambda now, count: now - timedelta(days=365 * count),
}


def _back(now: datetime, count: str, unit: str) -> datetime:
    spoken = count.lower().removesuffix(" of").split()
    number = int(spoken[-1]) if spoken[-1].isdigit() else _COUNTS[spoken[-1]]
    unit = unit.lower()
    return _BACK[unit[:2] if unit[0] == "m" else unit[0]](now, number)


def _days(start: datetime, count: int = 1) -> TimeRange:
    return TimeRange(start, start + timedelta(days=count))


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _is_midnight(instant: datetime) -> bool:
    return instant == _midnight(instant)


def _formatted(instant: datetime | None) -> str:
    return (
        "" if instant is None else f"{instant:%Y-%m-%d}" if _is_midnight(instant) else f"{instant:%Y-%m-%d %H:%M} UTC"
    )
