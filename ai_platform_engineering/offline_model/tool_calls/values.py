"""Values of arguments: conversion to what a schema accepts, and tokens with a known shape like URLs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.tool_calls.schemas import Property, compiled

_SHAPES: Mapping[str, re.Pattern[str]] = {
    "url": re.compile(r"\bhttps?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)]", re.I),
    "cidr": re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:]+)/\d{1,3}\b", re.I),
    "address": re.compile(
        r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4})(?![\w:/]|\.\d)", re.I
    ),
    "email": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
    "host": re.compile(r"(?<![\w@.-])(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}(?![\w-])|\blocalhost\b"),
    "key": re.compile(r"\b[A-Z][A-Z0-9]+-\d+\b"),
}


_DIGIT = re.compile(r"\d")
_SEPARATOR = re.compile(r"[-/#.:]")


def shape(item: Property) -> str | None:
    """The shape of an argument's values (url, email, cidr, address, host), if they have one."""
    words = set(item.words)
    if item.format in {"uri", "url"} or words & {"url", "uri", "link"}:
        return "url"
    if item.format == "email" or "email" in words:
        return "email"
    if words & {"cidr", "network", "subnet"}:
        return "cidr"
    if item.format in {"ipv4", "ipv6"} or words & {"ip", "address"}:
        return "address"
    described = lexical.description_terms(item.description)
    if words & {"host", "hostnam", "domain", "fqdn"} or ("name" in words and described & {"dns", "domain", "host"}):
        return "host"
    return None


def shaped(kind: str, text: str) -> Iterator[str]:
    yield from (match.group() for match in _SHAPES[kind].finditer(text))
    if kind == "host":
        yield from (match.group() for match in _SHAPES["address"].finditer(text))
    if kind == "url":
        yield from (f"https://{match.group()}" for match in _SHAPES["host"].finditer(text))


def coerce(item: Property, candidate: Any) -> Any:
    """The candidate as a value that the schema accepts, or None."""
    match item.type:
        case "integer" | "number":
            return _number(item, candidate)
        case "boolean":
            return candidate if isinstance(candidate, bool) else None
        case "array":
            return _array(item, candidate)
        case "object":
            return candidate if isinstance(candidate, dict) else None
        case _:
            return _text(item, candidate)


def _number(item: Property, candidate: Any) -> int | float | None:
    try:
        number = float(candidate)
    except (TypeError, ValueError, OverflowError):
        return None
    if (item.minimum is not None and number < item.minimum) or (item.maximum is not None and number > item.maximum):
        return None
    if item.choices:
        return next((choice for choice in item.choices if choice == number), None)
    if item.type == "number":
        return number
    return int(number) if number.is_integer() else None


def _array(item: Property, candidate: Any) -> list[Any] | None:
    members = candidate if isinstance(candidate, list) else [candidate]
    found = [coerce(item.items, member) if item.items else member for member in members]
    return None if None in found else found


def _text(item: Property, candidate: Any) -> Any:
    if item.choices:
        return candidate if candidate in item.choices else None
    text = str(candidate).strip()[: item.max_length]
    pattern = compiled(item.pattern) if item.pattern else None
    if len(text) < max(1, item.min_length) or (pattern and not pattern.search(text)):
        return None
    return text if is_like_example(item, text) else None


def is_like_example(item: Property, text: str) -> bool:
    """Whether a text has the format of the description's example: `SHOP-118` does not match the example `P4711`."""
    if item.example is None or not _DIGIT.search(item.example):
        return True
    return bool(_DIGIT.search(text)) and set(_SEPARATOR.findall(text)) == set(_SEPARATOR.findall(item.example))
