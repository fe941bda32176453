"""Results as Markdown: JSON becomes facts, lists and small tables; other text stays as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.utils.llm.offline.language import identifier_words

MAX_ROWS = 20
_MAX_COLUMNS = 6
_MAX_CELL = 80
_MAX_TEXT = 6000
_MAX_DEPTH = 4

_ACRONYMS = frozenset(
    {"id", "url", "uri", "ip", "dns", "cpu", "api", "http", "https", "tls", "ssl", "cidr", "ttl", "sha"}
)
_WRAPPERS = ("result", "items", "results", "data", "values")


def parse(text: str) -> Any:
    """The value a result stands for: parsed JSON, a list of values for JSON lines, or the text itself."""
    text = text.strip()
    if not text or text[0] not in "{[":
        return text
    try:
        return _unwrapped(json.loads(text))
    except ValueError:
        return _values_until_garbage(text) or text


def _values_until_garbage(text: str) -> list[Any]:
    """JSON values that follow one another, as when each item of a list is a content block of its own."""
    decoder = json.JSONDecoder()
    found: list[Any] = []
    position = 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError:
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


def label(name: str) -> str:
    """A field's name for people: `sync_status` becomes "Sync status"."""
    parts = [word.upper() if word in _ACRONYMS else word for word in identifier_words(str(name))]
    text = " ".join(parts) or str(name)
    return text[:1].upper() + text[1:]


def records_of(value: Any) -> tuple[Mapping[str, Any], ...]:
    """The things a value lists: a list of objects, or the one list of objects inside an object."""
    match value:
        case list() if value and all(isinstance(item, dict) for item in value):
            return tuple(value)
        case dict():
            lists = [records for inner in value.values() if isinstance(inner, list) and (records := records_of(inner))]
            return lists[0] if len(lists) == 1 else ()
        case _:
            return ()


def render(value: Any) -> str:
    match value:
        case str():
            return _shortened(value)
        case list():
            return _render_list(value)
        case dict():
            return _render_facts(value)
        case _:
            return _inline(value)


def _shortened(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT].rstrip()} ...\n\n_({len(text) - _MAX_TEXT} more characters are not shown.)_"


def _render_list(items: Sequence[Any]) -> str:
    if not items:
        return "Nothing was found."
    shown, hidden = items[:MAX_ROWS], len(items) - MAX_ROWS
    if all(isinstance(item, dict) and item for item in shown):
        body = _table(shown) or "\n".join(_bullet(item) for item in shown)
    else:
        body = "\n".join(f"- {_inline(item)}" for item in shown)
    return f"{body}\n\n_... and {hidden} more._" if hidden > 0 else body


def _table(items: Sequence[Mapping[str, Any]]) -> str | None:
    """A table, when every item has the same few short fields."""
    columns = [key for key in items[0] if any(not _is_blank(item.get(key)) for item in items)]
    if len(items) < 2 or not 2 <= len(columns) <= _MAX_COLUMNS or any(set(item) != set(items[0]) for item in items):
        return None
    rows = [[_inline(item[key]) for key in columns] for item in items]
    if any(len(cell) > _MAX_CELL or "\n" in cell for row in rows for cell in row):
        return None
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    head = [label(key) for key in columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(columns), *escaped])


def _bullet(item: Mapping[str, Any]) -> str:
    name_key = name_field(item)
    rest = [
        f"{label(key).lower()}: {_inline(value)}"
        for key, value in item.items()
        if key != name_key and not _is_blank(value)
    ]
    head = f"- **{_inline(item[name_key])}**" if name_key else "-"
    return f"{head}{': ' if name_key and rest else ' ' if rest else ''}{'; '.join(rest)}"


_NAME_FIELDS = ("name", "key", "id", "full_name", "title", "number", "identifier", "slug")


def name_field(item: Mapping[str, Any]) -> str | None:
    """The field by which a thing is known."""
    for field in _NAME_FIELDS:
        if isinstance(item.get(field), str | int) and not isinstance(item.get(field), bool):
            return field
    return next((key for key, value in item.items() if isinstance(value, str) and value), None)


def _render_facts(facts: Mapping[str, Any], depth: int = 0) -> str:
    indent = "  " * depth
    lines: list[str] = []
    for key, value in facts.items():
        if _is_blank(value):
            continue
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            lines += [f"{indent}- **{label(key)}:**", _render_facts(value, depth + 1)]
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            lines.append(f"{indent}- **{label(key)}:**")
            lines += [
                f"{indent}  {_bullet(item) if isinstance(item, dict) else f'- {_inline(item)}'}"
                for item in value[:MAX_ROWS]
            ]
            if len(value) > MAX_ROWS:
                lines.append(f"{indent}  - _... and {len(value) - MAX_ROWS} more_")
        else:
            lines.append(f"{indent}- **{label(key)}:** {_inline(value)}")
    return "\n".join(lines) or f"{indent}- nothing"


def _is_blank(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _inline(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            shown = ", ".join(_inline(item) for item in value[:MAX_ROWS])
            return f"{shown}, ... ({len(value)} in all)" if len(value) > MAX_ROWS else shown or "-"
        case dict():
            return ", ".join(f"{label(key).lower()} {_inline(inner)}" for key, inner in value.items()) or "-"
        case _:
            return " ".join(str(value).split())
