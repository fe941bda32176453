"""Parses the form that an agent's model requests.

Models write forms in many ways, so parsing is lenient. Only a form that a person could not fill in is refused, with a
sentence for the model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, get_args

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from ai_platform_engineering.events import FieldRules, FieldType, Form, FormField
from ai_platform_engineering.forms.field_names import normalized_name
from ai_platform_engineering.forms.questions import RESPONSE_FIELD
from ai_platform_engineering.utils.a2a_common.codec.labels import display

_TYPES: Final[dict[str, FieldType]] = {
    **{name: name for name in get_args(FieldType)},
    "textarea": "multiline",
    "longtext": "multiline",
    "integer": "number",
    "int": "number",
    "float": "number",
    "decimal": "number",
    "bool": "boolean",
    "checkbox": "boolean",
    "choice": "select",
    "enum": "select",
    "dropdown": "select",
    "radio": "select",
    "list": "multiselect",
    "array": "multiselect",
    "checkboxes": "multiselect",
    "uri": "url",
    "link": "url",
    "mail": "email",
}
# Text is valid for a field of any type, so the schema for the model has only this type.
_TEXT: Final = {"type": "string"}
_LENGTHS: Final[tuple[FieldType, ...]] = ("text", "multiline", "url", "email")


class ResponseField(BaseModel):
    # No docstring: it would be sent to the model in every turn. The descriptions are, so they are short.
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(description="Short; the value comes back under it.")
    type: FieldType = "text"
    description: str = Field("", description="What the person has to know to fill it in.")
    options: list[str] | None = Field(None, description="For select and multiselect.")
    default: Annotated[str | int | float | bool | list[str] | None, WithJsonSchema(_TEXT)] = None
    required: bool = True
    minimum: float | None = None
    maximum: float | None = None
    integer: bool = Field(False, description="Only whole numbers.")
    min_length: int | None = None
    max_length: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _normalized(cls, data: Any) -> Any:
        if isinstance(data, str):
            data = {"name": data}
        if not isinstance(data, Mapping):
            return data
        kind = _word(_given(data, "type", "field_type"))
        options = _options(_given(data, "options", "field_values", "choices", "enum"))
        return {
            "name": _text(_given(data, "name", "field_name")),
            "type": _type(kind, options),
            "description": _text(_given(data, "description", "field_description", "label")),
            "options": options,
            "default": _default(_given(data, "default", "default_value", "value")),
            "required": _boolean(data.get("required"), otherwise=True),
            "minimum": _number(data.get("minimum")),
            "maximum": _number(data.get("maximum")),
            "integer": _boolean(data.get("integer"), otherwise=kind in ("integer", "int")),
            "min_length": _length(data.get("min_length")),
            "max_length": _length(data.get("max_length")),
        }

    def field(self) -> FormField:
        return FormField(
            field_name=self.name,
            field_type=self.type,
            field_description=self.description,
            field_values=tuple(self.options) if self.options else None,
            default_value=self.default,
            required=self.required,
            rules=self._rules(),
        )

    def _rules(self) -> FieldRules | None:
        rules = FieldRules()
        if self.type == "number":
            rules = FieldRules(minimum=self.minimum, maximum=self.maximum, integer=self.integer)
        elif self.type in _LENGTHS:
            rules = FieldRules(min_length=self.min_length or None, max_length=self.max_length or None)
        return None if rules == FieldRules() else rules


class CAIPEAgentResponse(BaseModel):
    """A form that an agent wants a person to fill in."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    title: str = Field("", description="What the form is for, in a few words.")
    description: str = Field("", description="Why this is needed.")
    fields: list[ResponseField] = Field(default_factory=list)

    @field_validator("title", "description", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> str:
        return _text(value)

    @field_validator("fields", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise ValueError("`fields` is no list: give a list of objects, each with a name and a type.") from None
        if isinstance(value, Mapping):
            # One field, or a mapping of names to fields.
            if "name" in value or "field_name" in value:
                return [value]
            return [{"name": name, **(field if isinstance(field, Mapping) else {})} for name, field in value.items()]
        return [] if value is None else value

    @field_validator("fields")
    @classmethod
    def _can_be_filled_in(cls, fields: list[ResponseField]) -> list[ResponseField]:
        seen: list[str] = []
        for place, field in enumerate(fields, start=1):
            if not normalized_name(field.name):
                raise ValueError(f"Field {place} has no name: give every field a name of its own.")
            for name in seen:
                if normalized_name(name) == normalized_name(field.name):
                    raise ValueError(f"`{name}` and `{field.name}` are one name: give every field a name of its own.")
            seen.append(field.name)
            for low, high in ((field.minimum, field.maximum), (field.min_length, field.max_length or None)):
                if low is not None and high is not None and low > high:
                    raise ValueError(f"`{field.name}` takes at least {low:g} and at most {high:g}: no value fits that.")
        return fields

    def form(self, agent: str | None = None) -> Form:
        """The form as it is shown, without an id. A form without fields gets one field for a reply."""
        return Form(
            form_id="",
            title=self.title or (f"{display(agent)} needs your input" if agent else "Your input is needed"),
            fields=tuple(field.field() for field in self.fields) or (RESPONSE_FIELD,),
            description=self.description,
            agent=agent,
        )


def _given(data: Mapping[str, Any], *keys: str) -> Any:
    return next((data[key] for key in keys if data.get(key) is not None), None)


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _word(value: Any) -> str:
    """The name of a type. JSON schemas may list several, including null."""
    names = value if isinstance(value, list) else [value]
    return next((name.strip().lower() for name in names if isinstance(name, str) and name != "null"), "")


def _type(word: str, options: list[str] | None) -> FieldType:
    kind = _TYPES.get(word, "select")
    # Without options there is nothing to choose from.
    return "text" if kind == "select" and not options else kind


def _options(value: Any) -> list[str] | None:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple | Mapping):
        return None
    texts = [_text(_given(item, "value", "label", "name") if isinstance(item, Mapping) else item) for item in value]
    return list(dict.fromkeys(text for text in texts if text)) or None


def _default(value: Any) -> Any:
    match value:
        case str() | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case list() | tuple():
            return [str(item) for item in value]
        case _:
            return None


def _boolean(value: Any, *, otherwise: bool) -> bool:
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower(), otherwise)
    return value if isinstance(value, bool) else otherwise


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _length(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number.is_integer() else None
