"""Forms for missing arguments: one field for each argument, and the submitted values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.offline_model.english.lexical import spaced, stem
from ai_platform_engineering.offline_model.english.vocabulary import CREATE_VERBS
from ai_platform_engineering.offline_model.messages.conversation import ToolUse
from ai_platform_engineering.offline_model.messages.tools import FORM_TOOL, PlannedCall
from ai_platform_engineering.offline_model.results.rendering import arguments_in_words, enumeration, label
from ai_platform_engineering.offline_model.tool_calls import values
from ai_platform_engineering.offline_model.tool_calls.schemas import Property, ToolProfile

_MAX_OPTIONAL = 4
_CREATE = frozenset(stem(verb) for verb in CREATE_VERBS)
_MAX_ADDRESS_LENGTH = 2_000
_LONG_TEXT = frozenset(map(stem, ("body", "description", "message", "text", "content", "comment", "note")))


def form_call(
    tool: ToolProfile,
    missing: Sequence[Property],
    known: Mapping[str, Any],
    options: Mapping[str, Sequence[str]],
) -> PlannedCall | None:
    """The form that asks for the missing arguments of a tool; None if a form cannot represent one of them.

    `options` are the possible values of an argument, where they are known.
    """
    if not all(map(_fits_a_form, missing)):
        return None
    fields = [_field(item, options.get(item.name, ()), required=True) for item in missing]
    fields += [_field(item, (), required=False) for item in _optional_fields(tool, known)]
    wanted = enumeration([f"the {spaced(item.name).lower()}" for item in missing])
    given = arguments_in_words(known)
    return PlannedCall(
        FORM_TOOL,
        {
            "title": title_of(tool),
            "description": f"I need {wanted} before I can call `{tool.name}`{f' ({given})' if given else ''}.",
            "fields": fields,
        },
    )


def title_of(tool: ToolProfile) -> str:
    title = " ".join(spaced(tool.name).split())
    return title[:1].upper() + title[1:]


def submitted(form: ToolUse, tool: ToolProfile) -> dict[str, Any] | None:
    """The submitted values as arguments of the tool; None if the form was not submitted."""
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


def _fits_a_form(item: Property) -> bool:
    """Whether a form can represent the argument: its name is readable, and it contains no objects."""
    return (
        bool(item.words)
        and item.type != "object"
        and (item.type != "array" or item.items is None or item.items.type != "object")
    )


def _optional_fields(tool: ToolProfile, known: Mapping[str, Any]) -> list[Property]:
    """Optional arguments for the form of a new thing. Other forms only ask for required arguments."""
    if tool.verb not in _CREATE:
        return []
    optional = [item for item in tool.properties if not item.required or item.has_default]
    return [item for item in optional if item.name not in known and _fits_a_form(item)][:_MAX_OPTIONAL]


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
    # Fields for addresses have no length rule, so a short limit needs a text field: a value must not be cut.
    shape = values.shape(item)
    if shape in {"url", "email"} and (item.max_length is None or item.max_length >= _MAX_ADDRESS_LENGTH):
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
    """The validation rules of a field."""
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
    """The value in the type of the argument. A value that cannot be converted is passed on: the tool validates it."""
    if item.type == "array" and isinstance(value, str):
        value = [part for part in map(str.strip, value.split(",")) if part]
    typed = values.coerce(item, value)
    if typed is None or (item.type == "number" and typed == value):
        return value
    return typed
