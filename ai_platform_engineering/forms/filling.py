"""Filling in a form: either every value fits, or the form comes back with what was typed and what is wrong.

Nothing is changed on the way from a person to the graph, except where a surface cannot say it better (`fitted` lists
those cases). Sentences name the field and what it takes; a credential is neither repeated nor kept.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.credentials import is_secret, quoted
from ai_platform_engineering.forms.fitting import Misfit, fitted, is_blank, takes
from ai_platform_engineering.utils.a2a_common.codec.labels import one_line


@dataclass(frozen=True, slots=True)
class Filled:
    """Every value fits. Optional fields that nobody filled in are not among the values."""

    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The form to show again: `value` has what was typed so far, `error` what is wrong now, `response` all of it."""

    form: Form


_ABSENT: Any = object()
_NAME_LENGTH: Final = 80


def fill(form: Form, values: Mapping[str, Any]) -> Filled | Refused:
    """Fill in `form` with `values`; a field that is not among them takes its proposed value, else its default."""
    taken: dict[str, Any] = {}
    errors: dict[str, str] = {}
    named = {field.field_name: field for field in reversed(form.fields)}
    for name, field in reversed(named.items()):
        outcome = _filled_in(field, values.get(name, _ABSENT))
        if isinstance(outcome, Misfit):
            errors[name] = outcome.sentence
        elif outcome is not _ABSENT:
            taken[name] = outcome
    strangers = [_stranger(name, value, form) for name, value in values.items() if name not in named]
    if not errors and not strangers:
        return Filled(taken)
    again = [f"Please enter `{name}` again: it is not kept." for name in _forgotten(values, taken)]
    fields = tuple(replace(_entered(field, values, taken), error=errors.get(field.field_name)) for field in form.fields)
    return Refused(replace(form, fields=fields, response=" ".join([*errors.values(), *strangers, *again])))


def propose(form: Form, values: Mapping[str, Any]) -> Form:
    """`form` with `values` as what has been entered so far, where it has a field for them; nothing is checked."""
    entered = {name: value for name, value in values.items() if not is_blank(value)}
    return replace(form, fields=tuple(_entered(field, entered, {}) for field in form.fields))


def is_open(field: FormField) -> bool:
    """Whether `field` still needs a value from the person: there is none yet, or the one there is does not fit."""
    return isinstance(_filled_in(field, _ABSENT), Misfit)


def _filled_in(field: FormField, value: Any) -> Any:
    """What `field` is filled in with: a value, nothing (`_ABSENT`), or the Misfit that says why that will not do."""
    if value is not _ABSENT and not is_blank(value):
        return fitted(field, value)
    if not is_blank(field.value):
        proposed = fitted(field, field.value)
        # What was entered before and does not fit can be taken back by leaving the field empty.
        if value is _ABSENT or not isinstance(proposed, Misfit):
            return proposed
    # A default that does not fit is the asker's mistake, not the person's.
    if not is_blank(field.default_value) and not isinstance(default := fitted(field, field.default_value), Misfit):
        return default
    if not field.required:
        return _ABSENT
    what = takes(field)
    return Misfit(f"`{field.field_name}` is required" + ("." if what == "text" else f": it takes {what}."))


def _entered(field: FormField, values: Mapping[str, Any], taken: Mapping[str, Any]) -> FormField:
    """`field` with what was typed as its value."""
    name = field.field_name
    if name not in values:
        return field
    if is_blank(values[name]):
        return field if name in taken else replace(field, value=None)
    return replace(field, value=None if is_secret(name) else _showable(taken.get(name, values[name])))


def _showable(value: Any) -> Any:
    """`value` with the numbers that JSON does not know as text."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {key: _showable(item) for key, item in value.items()}
        case list() | tuple():
            return [_showable(item) for item in value]
        case _:
            return value


def _forgotten(values: Mapping[str, Any], taken: Mapping[str, Any]) -> list[str]:
    """Fields with a good value that has to be given again all the same."""
    return [name for name in taken if is_secret(name) and not is_blank(values.get(name))]


def _stranger(name: str, value: Any, form: Form) -> str:
    names = [field.field_name for field in form.fields]
    if len(name) <= _NAME_LENGTH and (near := difflib.get_close_matches(name, names, n=1)):
        hint = f"did you mean `{near[0]}`?"
    elif names:
        hint = f"the fields are {', '.join(f'`{known}`' for known in names)}."
    else:
        hint = "the form has no fields."
    # There is no field to keep the value in, so the sentence does.
    typed = "" if is_blank(value) or is_secret(name) else f" (with {quoted(value)})"
    return f"There is no field `{one_line(name, _NAME_LENGTH)}`{typed}; {hint}"
