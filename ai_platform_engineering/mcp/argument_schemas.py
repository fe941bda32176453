"""Argument schemas that every provider accepts: one object without references and top-level alternatives.

A conversion may make a schema more permissive, but never stricter. The server validates the arguments anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Schema = dict[str, Any]

_BRANCHES: Final = ("allOf", "anyOf", "oneOf")
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_TOP_LEVEL: Final = ("type", "properties", "required", "additionalProperties", "description")
"""The top-level keys that providers accept. Titles, identifiers and conditions are removed."""
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
_BY_NAME: Final = frozenset({"properties", "patternProperties"})
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_MAX_NODES: Final = 5000


class NotAnObjectError(Exception):
    """The arguments of a tool are not an object, so a model cannot call it."""


def argument_schema(schema: Mapping[str, Any]) -> Schema:
    """The schema of the arguments, equal to `schema` or more permissive."""
    inlined = _Inliner(schema).inlined(schema)
    kinds = inlined.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise NotAnObjectError
    properties, required = _merged(inlined)
    rest = {key: value for key, value in inlined.items() if key in _TOP_LEVEL}
    result: Schema = {**rest, "type": "object", "properties": properties}
    result.pop("required", None)
    if any(key in inlined for key in _BRANCHES):
        # A branch may have properties that the outer object does not list.
        result.pop("additionalProperties", None)
    if known := [name for name in required if name in properties]:
        result["required"] = known
    return result


def combinations(schema: Mapping[str, Any]) -> str:
    """The required arguments of top-level alternatives, as a sentence for the model; "" without alternatives."""
    inlined = _Inliner(schema).inlined(schema)
    sets = [
        " and ".join(f"`{name}`" for name in _required(branch))
        for key in _ALTERNATIVES
        for branch in _branches(inlined, key)
        if _required(branch)
    ]
    return f"Give one of these combinations of arguments: {'; '.join(sets)}." if len(sets) > 1 else ""


def _merged(schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The properties of the schema and all its branches, and the names that every alternative requires."""
    properties = dict(schema["properties"]) if isinstance(schema.get("properties"), Mapping) else {}
    required = _required(schema)
    for branch in _branches(schema, "allOf"):
        more, also_required = _merged(branch)
        properties = _union(properties, more)
        required += also_required
    for key in _ALTERNATIVES:
        alternatives = [_merged(branch) for branch in _branches(schema, key)]
        for more, _ in alternatives:
            properties = _union(properties, more)
        if alternatives:
            first, *others = (names for _, names in alternatives)
            required += [name for name in first if all(name in names for names in others)]
    return properties, list(dict.fromkeys(required))


def _branches(schema: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    branches = schema.get(key)
    yield from (branch for branch in branches if isinstance(branch, Mapping)) if isinstance(branches, list) else ()


def _required(schema: Mapping[str, Any]) -> list[str]:
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _union(properties: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    union = dict(properties)
    for name, schema in more.items():
        known = union.get(name)
        union[name] = schema if known in (None, {}, schema) or not schema else {"anyOf": [known, schema]}
    return union


class _Inliner:
    """Replaces references by their definitions, and adds keys that providers require."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def inlined(self, schema: Mapping[str, Any]) -> Schema:
        inlined = self._schema(schema, ())
        return inlined if isinstance(inlined, dict) else {}

    def _schema(self, schema: Any, within: tuple[str, ...]) -> Any:
        self._nodes += 1
        if not isinstance(schema, Mapping):
            # `true` and `false` are valid schemas, and a keyword may contain a list of schemas.
            return [self._schema(part, within) for part in schema] if isinstance(schema, list) else {}
        if self._nodes > _MAX_NODES:
            return _stub(schema)
        if isinstance(reference := schema.get("$ref"), str):
            siblings = {key: value for key, value in schema.items() if key != "$ref"}
            target = self._target(reference)
            if reference in within or target is None:
                return {**_stub(target or {}), **self._parts(siblings, within)}
            return {**self._parts(target, (*within, reference)), **self._parts(siblings, within)}
        return self._parts(schema, within)

    def _parts(self, schema: Mapping[str, Any], within: tuple[str, ...]) -> Schema:
        if "$ref" in schema:
            return dict(self._schema(schema, within))
        inlined = {key: self._part(key, part, within) for key, part in schema.items() if key not in _DEFINITIONS}
        if inlined.get("type") == "array" and "items" not in inlined:
            inlined["items"] = {}
        return inlined

    def _part(self, key: str, part: Any, within: tuple[str, ...]) -> Any:
        if key in _VALUES:
            return part
        if key in _BY_NAME and isinstance(part, Mapping):
            return {name: self._schema(schema, within) for name, schema in part.items()}
        if isinstance(part, Mapping):
            return self._schema(part, within)
        if isinstance(part, list) and any(isinstance(item, Mapping) for item in part):
            return self._schema(part, within)
        return part

    def _target(self, reference: str) -> Mapping[str, Any] | None:
        """The target of a reference within the schema; None for another document or a missing target."""
        if not reference.startswith("#"):
            return None
        found: Any = self._root
        for step in reference.lstrip("#").strip("/").split("/") if reference.strip("#/") else ():
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = found.get(key)
            elif isinstance(found, Sequence) and not isinstance(found, str) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        return found if isinstance(found, Mapping) else None


def _stub(schema: Mapping[str, Any]) -> Schema:
    """Type and description only, for a schema that is not inlined further."""
    stub = {key: schema[key] for key in ("type", "description") if key in schema}
    return {**stub, "items": {}} if stub.get("type") == "array" else stub
