"""Converts Python values to and from protobuf's JSON types, whose only number type is a double."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from google.protobuf.struct_pb2 import Struct, Value

EXACT_INTEGER = 2**53
"""The largest value up to which a double represents every integer."""


def set_value(target: Value, value: Any) -> None:
    """Write `value` into `target`. Values that JSON cannot represent (NaN, long integers, dates) become text."""
    match value:
        case None:
            target.null_value = 0  # type: ignore[assignment]  # the stub wants the enum; its only member is 0
        case bool():
            target.bool_value = value
        case str():
            target.string_value = value
        case int() if abs(value) <= EXACT_INTEGER:
            target.number_value = value
        case float() if math.isfinite(value):
            target.number_value = value
        case Mapping():
            target.struct_value.SetInParent()
            set_fields(target.struct_value, value)
        case list() | tuple() | set() | frozenset():
            target.list_value.SetInParent()
            for item in value:
                set_value(target.list_value.values.add(), item)
        case _:
            target.string_value = str(value)


def set_fields(target: Struct, values: Mapping[Any, Any]) -> None:
    for key, value in values.items():
        set_value(target.fields[str(key)], value)


def get_value(source: Value) -> Any:
    """The plain value of `source`, with whole numbers as integers."""
    kind = source.WhichOneof("kind")
    if kind == "string_value":
        return source.string_value
    if kind == "bool_value":
        return source.bool_value
    if kind == "number_value":
        return get_number(source.number_value)
    if kind == "struct_value":
        return get_fields(source.struct_value)
    if kind == "list_value":
        return [get_value(item) for item in source.list_value.values]
    return None


def get_number(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) <= EXACT_INTEGER else number


def get_fields(source: Struct) -> dict[str, Any]:
    return {key: get_value(value) for key, value in source.fields.items()}


def scrub(value: Any) -> Any:
    """`value` with invalid Unicode replaced in all texts: models sometimes emit half of a surrogate pair."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case Mapping():
            return {scrub(key): scrub(item) for key, item in value.items()}
        case tuple():
            return tuple(map(scrub, value))
        case list():
            return list(map(scrub, value))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            return dataclasses.replace(value, **{name: scrub(getattr(value, name)) for name in names})
        case _:
            return value
