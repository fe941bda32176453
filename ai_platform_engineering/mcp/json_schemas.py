"""JSON schemas as models are shown them. Pure functions over what pydantic generates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_REFERENCE: Final = "#/$defs/"
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
_BY_NAME: Final = frozenset({"$defs", "properties"})


class _RefersToItselfError(Exception):
    """There is no end to writing such a definition out."""


def untitled(schema: Any) -> Any:
    """Without the titles, which say the names of arguments again."""
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
        return {name: untitled(of_name) for name, of_name in part.items()}
    return untitled(part)


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """With definitions in the places that refer to them, because not every model follows references.

    As it was, where a definition refers to itself.
    """
    if "$defs" not in schema:
        return schema
    rest = {key: part for key, part in schema.items() if key != "$defs"}
    try:
        whole: dict[str, Any] = _written_out(rest, schema["$defs"], ())
    except _RefersToItselfError:
        return schema
    return whole


def _written_out(part: Any, definitions: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    match part:
        case {"$ref": str(reference), **beside} if reference.startswith(_REFERENCE):
            name = reference.removeprefix(_REFERENCE)
            if name in within:
                raise _RefersToItselfError
            return {
                **_written_out(definitions[name], definitions, (*within, name)),
                **_written_out(beside, definitions, within),
            }
        case dict():
            return {key: _written_out(value, definitions, within) for key, value in part.items()}
        case list():
            return [_written_out(value, definitions, within) for value in part]
        case _:
            return part
