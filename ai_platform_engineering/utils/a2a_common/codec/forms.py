"""Encodes and decodes forms as the `UserInputMetaData` data part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from ai_platform_engineering.events import FieldRules, FieldType, Form, FormField

_FIELD_TYPES: dict[str, FieldType] = {name: name for name in get_args(FieldType)}
_MAX_DIGITS = 400


def form_data(form: Form) -> dict[str, Any]:
    data: dict[str, Any] = {
        "user_input": True,
        "form_id": form.form_id,
        "input_title": form.title,
        "input_description": form.description,
        "response": form.response,
        "input_fields": [_field_data(field) for field in form.fields],
    }
    if form.agent is not None:
        data["agent"] = form.agent
    if form.action_requests:
        data["action_requests"] = list(form.action_requests)
    return data


def is_form_data(data: object) -> bool:
    return isinstance(data, Mapping) and (data.get("user_input") is True or isinstance(data.get("input_fields"), list))


def read_form(data: Mapping[str, Any], *, form_id: str = "") -> Form:
    """The form in `data`; `form_id` is the default if `data` has none."""
    fields = data.get("input_fields")
    requests = data.get("action_requests")
    return Form(
        form_id=_text(data, "form_id") or form_id,
        title=_text(data, "input_title"),
        fields=tuple(_read_field(field) for field in fields if isinstance(field, Mapping))
        if isinstance(fields, list)
        else (),
        description=_text(data, "input_description"),
        response=_text(data, "response"),
        agent=_text(data, "agent") if "agent" in data else None,
        action_requests=tuple(dict(request) for request in requests if isinstance(request, Mapping))
        if isinstance(requests, list)
        else (),
    )


def _field_data(field: FormField) -> dict[str, Any]:
    data: dict[str, Any] = {
        "field_name": field.field_name,
        "field_type": field.field_type,
        "field_description": field.field_description,
        "field_values": None if field.field_values is None else list(field.field_values),
        "default_value": field.default_value,
        "required": field.required,
        "value": field.value,
    }
    if rules := _rules_data(field.rules):
        data["validation"] = rules
    if field.error is not None:
        data["field_error"] = field.error
    return data


def _rules_data(rules: FieldRules | None) -> dict[str, Any]:
    if rules is None:
        return {}
    return {name: rule for name, rule in asdict(rules).items() if rule is not None and rule is not False}


def _read_field(data: Mapping[str, Any]) -> FormField:
    options = data.get("field_values")
    values = tuple(map(str, options)) if isinstance(options, list) else None
    return FormField(
        field_name=_text(data, "field_name"),
        field_type=_FIELD_TYPES.get(_text(data, "field_type"), "select" if values else "text"),
        field_description=_text(data, "field_description"),
        field_values=values,
        default_value=data.get("default_value"),
        required=data.get("required") is not False,
        value=data.get("value"),
        rules=_read_rules(data.get("validation")),
        error=error if isinstance(error := data.get("field_error"), str) else None,
    )


def _read_rules(data: object) -> FieldRules | None:
    """The valid rules in `data`; None if there are none."""
    if not isinstance(data, Mapping):
        return None
    rules = FieldRules(
        minimum=_number(data.get("minimum")),
        maximum=_number(data.get("maximum")),
        integer=data.get("integer") is True,
        min_length=_length(data.get("min_length")),
        max_length=_length(data.get("max_length")),
        pattern=pattern if isinstance(pattern := data.get("pattern"), str) else None,
    )
    return None if rules == FieldRules() else rules


def _number(value: object) -> int | float | None:
    if isinstance(value, str):
        # Protobuf's numbers are doubles: an integer that a double cannot hold is sent as a string of digits.
        return int(value) if value.removeprefix("-").isdecimal() and len(value) <= _MAX_DIGITS else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def _length(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
