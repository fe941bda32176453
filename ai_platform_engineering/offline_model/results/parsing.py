"""Parse tool results: JSON text into values, and values into listings of records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ai_platform_engineering.offline_model.english.time_ranges import parse_timestamp

_WRAPPERS = ("result", "items", "results", "data", "values")
_COUNTS = ("total", "count", "total_count")
_AS_OF = "as_of"
_IDENTITIES = ("key", "name", "id", "full_name", "identifier", "slug", "repository", "title", "number")
_CONTAINERS = ("repository", "repo", "project")


@dataclass(frozen=True, slots=True)
class Listing:
    """The records of a result, their total number, and the other fields of the result (`facts`)."""

    records: tuple[Mapping[str, Any], ...]
    total: int
    facts: Mapping[str, Any]
    as_of: datetime | None = None
    """The time of the data, if the result states it."""


def parse(text: str) -> Any:
    """The value of a result: parsed JSON, a list of values for JSON lines, or the text itself."""
    text = text.strip()
    if not text or text[0] not in "{[":
        return text
    try:
        return _unwrapped(json.loads(text))
    except (ValueError, RecursionError):
        return _json_lines(text) or text


def _json_lines(text: str) -> list[Any]:
    """Consecutive JSON values: some servers send each item of a list as a content block of its own."""
    decoder = json.JSONDecoder()
    found: list[Any] = []
    position = 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        found.append(value)
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
    return found


def _unwrapped(value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        key, inner = next(iter(value.items()))
        if key in _WRAPPERS:
            return inner
    return value


def listing(value: Any) -> Listing | None:
    """The value as a listing: a list of objects, or an object with exactly one list of objects. Else None."""
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return Listing(tuple(value), len(value), {})
    if not isinstance(value, dict):
        return None
    lists = [key for key, inner in value.items() if isinstance(inner, list) and _are_records(inner)]
    facts = {key: inner for key, inner in value.items() if key not in lists and key != _AS_OF}
    if len(lists) != 1 or len(facts) > 3 or any(isinstance(inner, dict | list) and inner for inner in facts.values()):
        return None
    records = value[lists[0]]
    if not records and not any(isinstance(facts.get(key), int) for key in _COUNTS):
        return None
    stated = next((facts[key] for key in _COUNTS if isinstance(facts.get(key), int)), 0)
    rest = {key: inner for key, inner in facts.items() if key not in _COUNTS}
    return Listing(tuple(records), max(len(records), stated), rest, parse_timestamp(value.get(_AS_OF)))


def _are_records(items: Sequence[Any]) -> bool:
    return all(isinstance(item, dict) and item for item in items)


def identity(record: Mapping[str, Any]) -> str | None:
    """The name of a record, by which a person or a later question can refer to it."""
    lower = {str(key).lower(): value for key, value in record.items()}
    container = next((lower[key] for key in _CONTAINERS if isinstance(lower.get(key), str)), None)
    if container and isinstance(lower.get("number"), int | str) and not {"key", "name", "id"} & set(lower):
        return f"{container}#{lower['number']}"
    for key in _IDENTITIES:
        if isinstance(lower.get(key), str | int) and not isinstance(lower.get(key), bool) and lower[key] != "":
            return str(lower[key])
    return None
