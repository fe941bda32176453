"""Approval forms, and the decision in their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Approved, Rejected
from ai_platform_engineering.forms.filling import InvalidForm, fill
from ai_platform_engineering.forms.questions import APPROVAL_FIELDS

_DECISION: Final = "decision"


def is_approval(form: Form) -> bool:
    """Whether `form` asks for a decision about actions. Some agents ask for values and only show the actions."""
    return bool(form.action_requests) and (not form.fields or _decision_options(form) >= {"approve", "reject"})


def answerable(form: Form) -> Form:
    """`form`, with the default fields if it is an approval without fields."""
    return replace(form, fields=APPROVAL_FIELDS) if is_approval(form) and not form.fields else form


def decide(form: Form, values: Mapping[str, Any]) -> Approved | Rejected | InvalidForm:
    """The decision in `values`. Values that were entered or proposed earlier do not count."""
    fields = tuple(
        replace(field, value=None, default_value=None, required=True) if field.field_name == _DECISION else field
        for field in answerable(form).fields
    )
    outcome = fill(replace(form, fields=fields), values)
    if isinstance(outcome, InvalidForm):
        return outcome
    if outcome.values[_DECISION] == "approve":
        return Approved(remember=outcome.values.get("remember") is True)
    return Rejected(str(outcome.values.get("reason", "")))


def _decision_options(form: Form) -> set[str]:
    return {
        option
        for field in form.fields
        if field.field_name == _DECISION and field.field_type == "select"
        for option in field.field_values or ()
    }
