"""JSON schemas for models. Pure functions over the schemas that pydantic generates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_REFERENCE: Final = "#/$defs/"
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
_BY_NAME: Final = frozenset({"$defs", "properties"})


class _RecursiveDefinitionError(Exception):
    """A recursive definition cannot be inlined."""


def untitled(schema: Any) -> Any:
    """The schema without titles, which only repeat the names of arguments."""
    match schema:
        case dict():
            return {
                key: _untitled_part(key, part)
                for key, part in schema.items()
                if not (key == "title" and isinstance(part, str))
            }
        case list():
            return [untitled(part) for part in schema]
        case _:
            return schema


def _untitled_part(key: str, part: Any) -> Any:
    if key in _VALUES:
        return part
    if key in _BY_NAME:
        return {name: untitled(subschema) for name, subschema in part.items()}
    return untitled(part)


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with references replaced by their definitions, because not every model resolves references.

    A schema with a recursive definition is returned unchanged.
    """
    if "$defs" not in schema:
        return schema
    rest = {key: part for key, part in schema.items() if key != "$defs"}
    try:
        result: dict[str, Any] = _inlined_part(rest, schema["$defs"], ())
    except _RecursiveDefinitionError:
        return schema
    return result


def _inlined_part(part: Any, definitions: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    match part:
        case {"$ref": str(reference), **siblings} if reference.startswith(_REFERENCE):
            name = reference.removeprefix(_REFERENCE)
            if name in within:
                raise _RecursiveDefinitionError
            return {
                **_inlined_part(definitions[name], definitions, (*within, name)),
                **_inlined_part(siblings, definitions, within),
            }
        case dict():
            return {key: _inlined_part(value, definitions, within) for key, value in part.items()}
        case list():
            return [_inlined_part(value, definitions, within) for value in part]
        case _:
            return part
