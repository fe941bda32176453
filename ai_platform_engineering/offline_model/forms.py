"""A form for what a request does not say: one field for each argument, and the values that came back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.offline_model import values
from ai_platform_engineering.offline_model.answers import enumeration, scope
from ai_platform_engineering.offline_model.conversation import Use
from ai_platform_engineering.offline_model.language import spaced, stem
from ai_platform_engineering.offline_model.rendering import label
from ai_platform_engineering.offline_model.schemas import Profile, Property
from ai_platform_engineering.offline_model.tools import FORM_TOOL, Call
from ai_platform_engineering.offline_model.vocabulary import CREATE_VERBS

_MAX_OPTIONAL = 4
_CREATE = frozenset(stem(verb) for verb in CREATE_VERBS)
_LONG_TEXT = frozenset(map(stem, ("body", "description", "message", "text", "content", "comment", "note")))


def form_call(
    tool: Profile,
    missing: Sequence[Property],
    known: Mapping[str, Any],
    options: Mapping[str, Sequence[str]],
) -> Call | None:
    """The form that asks for the missing arguments of a tool; None when a form cannot hold one of them.

    `options` are the things that an argument can name, where they are known.
    """
    if not all(map(_can_be_asked, missing)):
        return None
    fields = [_field(item, options.get(item.name, ()), required=True) for item in missing]
    fields += [_field(item, (), required=False) for item in _worth_offering(tool, known)]
    wanted = enumeration([f"the {spaced(item.name).lower()}" for item in missing])
    given = scope(known)
    return Call(
        FORM_TOOL,
        {
            "title": title_of(tool),
            "description": f"I need {wanted} before I can call `{tool.name}`{f' ({given})' if given else ''}.",
            "fields": fields,
        },
    )


def title_of(tool: Profile) -> str:
    title = " ".join(spaced(tool.name).split())
    return title[:1].upper() + title[1:]


def submitted(form: Use, tool: Profile) -> dict[str, Any] | None:
    """The values that a form came back with, as arguments of the tool; None when it brought none."""
    try:
        given = json.loads(form.result or "")
    except (ValueError, RecursionError):
        return None
    if form.failed or not isinstance(given, dict):
        return None
    return {
        item.name: _argument(item, given[item.name])
        for item in tool.properties
        if given.get(item.name) not in (None, "")
    }


def _can_be_asked(item: Property) -> bool:
    """Whether a form can hold the argument: it has a name that people can read, and is no object."""
    return (
        bool(item.words)
        and item.type != "object"
        and (item.type != "array" or item.items is None or item.items.type != "object")
    )


def _worth_offering(tool: Profile, known: Mapping[str, Any]) -> list[Property]:
    """Optional arguments that make a new thing complete. For anything else a person is asked only what is needed."""
    if tool.verb not in _CREATE:
        return []
    optional = [item for item in tool.properties if not item.required or item.has_default]
    return [item for item in optional if item.name not in known and _can_be_asked(item)][:_MAX_OPTIONAL]


def _field(item: Property, options: Sequence[str], *, required: bool) -> dict[str, Any]:
    choices = [str(choice) for choice in (item.items.choices if item.items else item.choices)] or list(options)
    field: dict[str, Any] = {
        "name": item.name,
        "type": _type(item, choices),
        "description": _description(item, choices),
        "required": required,
    }
    if choices:
        field["options"] = choices
    if (default := _default(item, choices)) is not None:
        field["default"] = default
    return field | _rules(item, field["type"])


def _type(item: Property, choices: Sequence[str]) -> str:
    if choices:
        return "multiselect" if item.type == "array" else "select"
    match item.type:
        case "boolean":
            return "boolean"
        case "integer" | "number":
            return "number"
        case "array":
            return "text"
    if (shape := values.shape(item)) in {"url", "email"}:
        return str(shape)
    return "multiline" if _LONG_TEXT & set(item.words) else "text"


def _description(item: Property, choices: Sequence[str]) -> str:
    described = item.description or label(item.name)
    return f"{described.rstrip('.')}; several are separated by commas." if _is_plain_list(item, choices) else described


def _is_plain_list(item: Property, choices: Sequence[str]) -> bool:
    return item.type == "array" and not choices


def _default(item: Property, choices: Sequence[str]) -> Any:
    if choices and item.type != "array":
        return str(item.default) if item.default is not None and str(item.default) in choices else None
    if isinstance(item.default, list):
        return item.default if choices and item.default else None
    return item.default if item.default != "" else None


def _rules(item: Property, kind: str) -> dict[str, Any]:
    """What a value has to keep to, as the form states it."""
    rules: dict[str, Any] = {}
    if kind == "number":
        rules = {"minimum": item.minimum, "maximum": item.maximum, "integer": True if item.type == "integer" else None}
        rules = {name: int(bound) if _is_whole(bound) else bound for name, bound in rules.items()}
    elif kind in {"text", "multiline"} and item.type == "string":
        rules = {"min_length": item.min_length or None, "max_length": item.max_length}
    return {name: rule for name, rule in rules.items() if rule is not None}


def _is_whole(bound: Any) -> bool:
    return isinstance(bound, float) and bound.is_integer()


def _argument(item: Property, value: Any) -> Any:
    """The value in the type of the argument. What a person typed is never dropped: the tool may know better."""
    if item.type == "array" and isinstance(value, str):
        value = [part for part in map(str.strip, value.split(",")) if part]
    typed = values.coerce(item, value)
    if typed is None or (item.type == "number" and typed == value):
        return value
    return typed
