"""Forms as the data part that every client reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from ai_platform_engineering.events import FieldType, Form, FormField

_FIELD_TYPES: dict[str, FieldType] = {name: name for name in get_args(FieldType)}


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


def read_form(data: Mapping[str, Any], *, form_id: str = "", agent: str | None = None) -> Form:
    """The form in `data`; `form_id` and `agent` stand in where it names none."""
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
        agent=_text(data, "agent") if "agent" in data else agent,
        action_requests=tuple(dict(request) for request in requests if isinstance(request, Mapping))
        if isinstance(requests, list)
        else (),
    )


def _field_data(field: FormField) -> dict[str, Any]:
    return {
        "field_name": field.field_name,
        "field_type": field.field_type,
        "field_description": field.field_description,
        "field_values": None if field.field_values is None else list(field.field_values),
        "default_value": field.default_value,
        "required": field.required,
        "value": field.value,
    }


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
    )


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
