"""Credentials in a call that waits for approval. Everybody in the channel sees the question, so that it names them and
does not show them, also where a supervisor did not see to that. Forms pass here on their way into the state, from the
stream and from the store: whatever shows one has nothing to hide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.questions import without_credentials

_WITHHELD: Final = "withheld"


def masked_form(form: Form) -> Form:
    """The form as it may be shown; once more, it stays the same."""
    return replace(form, action_requests=tuple(map(_masked, form.action_requests)))


def is_withheld(request: Mapping[str, Any], argument: str) -> bool:
    """Whether it was masked here. The supervisor does not know, and would take what is shown of it at its word."""
    names = request.get(_WITHHELD)
    return isinstance(names, list) and argument in names


def _masked(request: dict[str, Any]) -> dict[str, Any]:
    (shown,) = without_credentials([request])
    given = request.get("args")
    if not isinstance(given, Mapping):
        return shown
    names = [name for name, value in given.items() if is_withheld(request, name) or shown["args"][name] != value]
    return shown | {_WITHHELD: names} if names else shown
