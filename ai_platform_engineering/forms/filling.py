"""Fills in a form: either all values are valid, or the result is the form with the entered values and the errors.

Values reach the graph unchanged, except for the conversions that `validated` lists. Error sentences name the field and
the expected values. Credentials are neither repeated in sentences nor stored in the form.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.field_names import is_secret, quoted
from ai_platform_engineering.forms.validation import InvalidValue, expected, is_blank, validated
from ai_platform_engineering.utils.a2a_common.codec.labels import one_line


@dataclass(frozen=True, slots=True)
class FilledForm:
    """All values are valid. Optional fields without a value are left out."""

    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class InvalidForm:
    """The form to show again: each field has its entered `value` and its `error`; `response` has all errors."""

    form: Form


_ABSENT: Any = object()
_NAME_LENGTH: Final = 80


def fill(form: Form, values: Mapping[str, Any]) -> FilledForm | InvalidForm:
    """Fill in `form` with `values`. A field without a value takes its proposed value, else its default."""
    taken: dict[str, Any] = {}
    errors: dict[str, str] = {}
    named = {field.field_name: field for field in reversed(form.fields)}
    for name, field in reversed(named.items()):
        outcome = _filled_in(field, values.get(name, _ABSENT))
        if isinstance(outcome, InvalidValue):
            errors[name] = outcome.sentence
        elif outcome is not _ABSENT:
            taken[name] = outcome
    unknown = [_unknown_field(name, value, form) for name, value in values.items() if name not in named]
    if not errors and not unknown:
        return FilledForm(taken)
    again = [f"Please enter `{name}` again: it is not kept." for name in _to_reenter(values, taken)]
    fields = tuple(replace(_entered(field, values, taken), error=errors.get(field.field_name)) for field in form.fields)
    return InvalidForm(replace(form, fields=fields, response=" ".join([*errors.values(), *unknown, *again])))


def propose(form: Form, values: Mapping[str, Any]) -> Form:
    """`form` with `values` as the entered values of its fields, without validation."""
    entered = {name: value for name, value in values.items() if not is_blank(value)}
    return replace(form, fields=tuple(_entered(field, entered, {}) for field in form.fields))


def is_open(field: FormField) -> bool:
    """Whether `field` still needs a value from the person: it has none, or an invalid one."""
    return isinstance(_filled_in(field, _ABSENT), InvalidValue)


def _filled_in(field: FormField, value: Any) -> Any:
    """The value of `field`: valid, absent (`_ABSENT`), or an `InvalidValue`."""
    if value is not _ABSENT and not is_blank(value):
        return validated(field, value)
    if not is_blank(field.value):
        proposed = validated(field, field.value)
        # A person can remove an invalid value that was entered earlier by leaving the field empty.
        if value is _ABSENT or not isinstance(proposed, InvalidValue):
            return proposed
    # An invalid default is the agent's mistake, so the person gets no error for it.
    if not is_blank(field.default_value) and not isinstance(
        default := validated(field, field.default_value), InvalidValue
    ):
        return default
    if not field.required:
        return _ABSENT
    what = expected(field)
    return InvalidValue(f"`{field.field_name}` is required" + ("." if what == "text" else f": it takes {what}."))


def _entered(field: FormField, values: Mapping[str, Any], taken: Mapping[str, Any]) -> FormField:
    """`field` with the entered value."""
    name = field.field_name
    if name not in values:
        return field
    if is_blank(values[name]):
        return field if name in taken else replace(field, value=None)
    return replace(field, value=None if is_secret(name) else _showable(taken.get(name, values[name])))


def _showable(value: Any) -> Any:
    """`value` with numbers that JSON lacks (infinity, NaN) as text."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {key: _showable(item) for key, item in value.items()}
        case list() | tuple():
            return [_showable(item) for item in value]
        case _:
            return value


def _to_reenter(values: Mapping[str, Any], taken: Mapping[str, Any]) -> list[str]:
    """Fields whose valid value must be entered again, because credentials are not stored."""
    return [name for name in taken if is_secret(name) and not is_blank(values.get(name))]


def _unknown_field(name: str, value: Any, form: Form) -> str:
    names = [field.field_name for field in form.fields]
    if len(name) <= _NAME_LENGTH and (near := difflib.get_close_matches(name, names, n=1)):
        hint = f"did you mean `{near[0]}`?"
    elif names:
        hint = f"the fields are {', '.join(f'`{known}`' for known in names)}."
    else:
        hint = "the form has no fields."
    # No field has this value, so the sentence repeats it.
    entered = "" if is_blank(value) or is_secret(name) else f" (with {quoted(value)})"
    return f"There is no field `{one_line(name, _NAME_LENGTH)}`{entered}; {hint}"
