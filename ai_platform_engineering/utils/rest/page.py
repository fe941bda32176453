"""Renders the OpenAPI description of an API as one HTML page without external resources. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2330; }
h2 { border-top: 1px solid #d5dbe5; padding-top: 1rem; font-size: 1.15rem; }
code { font: 0.9em ui-monospace, monospace; background: #f0f3f8; padding: 0.1em 0.3em; border-radius: 3px; }
table { border-collapse: collapse; } td, th { text-align: left; vertical-align: top; padding: 0.2rem 1rem 0.2rem 0; }
@media (prefers-color-scheme: dark) {
  body { background: #14181f; color: #dde3ec; } code { background: #232a35; } h2 { border-color: #333c4a; }
  a { color: #8ab4f8; }
}
"""
Schema = Mapping[str, Any]


def api_page(api: Schema, prefix: str = "") -> str:
    """The page of an API that is mounted at `prefix`."""
    title = escape(api["info"]["title"])
    parts = [
        f"<h1>{title} {escape(api['info']['version'])}</h1>",
        f"<p>{_prose(api['info'].get('description', ''))} "
        f'The same for programs: <a href="{escape(prefix)}/openapi.json">openapi.json</a>.</p>',
    ]
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            parts += _operation(method, prefix + path, operation, api)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _operation(method: str, path: str, operation: Schema, api: Schema) -> Iterator[str]:
    yield f"<h2>{escape(operation['summary'])}</h2><p><code>{method.upper()} {escape(path)}</code></p>"
    if description := operation.get("description"):
        yield f"<p>{_prose(description)}</p>"
    rows = [(each["name"], each["in"], each["schema"], each.get("description")) for each in _parameters(operation)]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        fields = _resolved(content["schema"], api).get("properties")
        if fields is None:
            rows.append((kind, "body", content["schema"], None))
        else:
            rows += [(name, "body", schema, schema.get("description")) for name, schema in fields.items()]
    if rows:
        yield "<table>" + "".join(_row(*row, api) for row in rows) + "</table>"
    yield "<p>Responses: "
    yield ", ".join(_response(status, response) for status, response in operation["responses"].items())
    yield ".</p>"


def _parameters(operation: Schema) -> list[Schema]:
    return list(operation.get("parameters", []))


def _row(name: str, place: str, schema: Schema, description: str | None, api: Schema) -> str:
    cells = (f"<code>{escape(name)}</code>", escape(place), escape(_kind(schema, api)), _prose(description or ""))
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _kind(schema: Schema, api: Schema) -> str:
    """A short name for the type of a value."""
    if choices := [choice for choice in schema.get("anyOf", []) if choice.get("type") != "null"]:
        return " or ".join(_kind(choice, api) for choice in choices)
    if options := schema.get("enum"):
        return " | ".join(map(str, options))
    resolved = _resolved(schema, api)
    if fields := resolved.get("properties"):
        return "object: " + ", ".join(fields)
    return str(resolved.get("format") or resolved.get("type", ""))


def _response(status: str, response: Schema) -> str:
    return f"<code>{escape(status)}</code> {escape(response['description'].rstrip('.'))}"


def _resolved(schema: Schema, api: Schema) -> Schema:
    reference = schema.get("$ref")
    return schema if reference is None else api["components"]["schemas"][reference.rpartition("/")[2]]


def _prose(text: str) -> str:
    """HTML of a text, with the parts in backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
