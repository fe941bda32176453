"""Render tool results as Markdown: JSON becomes facts, lists and small tables; other text stays unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.offline_model.english.lexical import spaced
from ai_platform_engineering.offline_model.results.parsing import Listing, identity, listing

MAX_ROWS = 20
_MAX_COLUMNS = 6
_MAX_CELL = 70
_MAX_TEXT = 6000
_MAX_DEPTH = 4

_ACRONYMS = frozenset(
    {"id", "url", "uri", "ip", "dns", "cpu", "api", "http", "https", "tls", "ssl", "cidr", "ttl", "sha", "os"}
)
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)")


def label(name: str) -> str:
    """A readable field name: `sync_status` becomes "Sync status"."""
    parts = [part.upper() if part.lower() in _ACRONYMS else part for part in spaced(str(name)).split()]
    text = " ".join(part if part.isupper() else part.lower() for part in parts) or str(name)
    return text[:1].upper() + text[1:]


def render(value: Any) -> str:
    if (found := listing(value)) is not None and (found.records or found.facts):
        return render_listing(found)
    match value:
        case str():
            return _shortened(value)
        case list():
            return _render_list(value)
        case dict():
            return _render_facts(value)
        case _:
            return inline(value)


def _shortened(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT].rstrip()} ...\n\n_({len(text) - _MAX_TEXT} more characters are not shown.)_"


def _render_list(items: Sequence[Any]) -> str:
    if not items:
        return "Nothing was found."
    return _with_rest("\n".join(f"- {inline(item)}" for item in items[:MAX_ROWS]), len(items))


def render_listing(found: Listing) -> str:
    shown = found.records[:MAX_ROWS]
    body = (_table(shown) or "\n".join(map(_bullet, shown))) if shown else ""
    facts = _render_facts(found.facts) if found.facts else ""
    return "\n\n".join(part for part in (facts, _with_rest(body, found.total)) if part)


def _with_rest(body: str, total: int) -> str:
    return f"{body}\n\n_... and {total - MAX_ROWS} more._" if total > MAX_ROWS and body else body


def _table(records: Sequence[Mapping[str, Any]]) -> str | None:
    """A table of the fields that are short in every record; None if its rows would not identify the records."""
    columns = [key for key in records[0] if _fits_column([record.get(key) for record in records])][:_MAX_COLUMNS]
    chosen = [{key: record.get(key) for key in columns} for record in records]
    rows = [[inline(row[key]).replace("|", "\\|") for key in columns] for row in chosen]
    if len(records) < 2 or len(columns) < 2 or len(set(map(tuple, rows))) < len(rows):
        return None
    if any(identity(row) != identity(record) for row, record in zip(chosen, records, strict=True)):
        return None
    head = [label(key) for key in columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(columns), *rows])


def _fits_column(values: Sequence[Any]) -> bool:
    if all(map(_is_blank, values)) or any(isinstance(value, dict) for value in values):
        return False
    cells = [inline(value) for value in values]
    return all(len(cell) <= _MAX_CELL and not cell.startswith(("http://", "https://")) for cell in cells)


def _bullet(record: Mapping[str, Any]) -> str:
    name = identity(record)
    rest = [
        f"{label(key).lower()} {inline(value)}"
        for key, value in record.items()
        if not _is_blank(value) and inline(value) != name
    ]
    if name is None:
        return f"- {'; '.join(rest)}"
    return f"- **{name}**: {'; '.join(rest)}" if rest else f"- **{name}**"


def _render_facts(facts: Mapping[str, Any], depth: int = 0) -> str:
    indent = "  " * depth
    lines: list[str] = []
    for key, value in facts.items():
        if _is_blank(value):
            continue
        head = f"{indent}- **{label(key)}:**"
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            lines += [head, _render_facts(value, depth + 1)]
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            lines.append(head)
            lines += [
                f"{indent}  {_bullet(item) if isinstance(item, dict) else f'- {inline(item)}'}"
                for item in value[:MAX_ROWS]
            ]
            if len(value) > MAX_ROWS:
                lines.append(f"{indent}  - _... and {len(value) - MAX_ROWS} more_")
        else:
            lines.append(f"{head} {inline(value)}")
    return "\n".join(lines) or f"{indent}- nothing"


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def inline(value: Any) -> str:
    """A value on one line."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            shown = ", ".join(inline(item) for item in value[:MAX_ROWS])
            return f"{shown}, ... ({len(value)} in all)" if len(value) > MAX_ROWS else shown or "-"
        case dict():
            return ", ".join(f"{label(key).lower()} {inline(inner)}" for key, inner in value.items()) or "-"
        case _:
            text = " ".join(str(value).split())
            return _TIMESTAMP.sub(r"\1 \2 UTC", text) if _TIMESTAMP.fullmatch(text) else text


def enumeration(things: Sequence[str]) -> str:
    return f"{', '.join(things[:-1])} and {things[-1]}" if len(things) > 1 else things[0]


def arguments_in_words(arguments: Mapping[str, Any]) -> str:
    """Arguments as names and values, on one line."""
    return ", ".join(f"{spaced(name).lower()} {inline(value)}" for name, value in arguments.items())
