"""Credentials in a call that waits for approval. Everybody in the channel sees the question, so that it names them and
does not show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.utils.forms.credentials import is_secret
from ai_platform_engineering.utils.forms.fitting import is_blank
from ai_platform_engineering.utils.redact import MASK, redact

_GIVEN: Final = ("args", "remember")


def masked_form(form: Form) -> Form:
    """The form as it may be shown. What is done is never made from it."""
    requests = tuple(
        {key: masked(value) if key in _GIVEN else value for key, value in request.items()}
        for request in form.action_requests
    )
    return replace(form, action_requests=requests)


def masked(value: Any) -> Any:
    """`value` without credentials, however deep they are: those that a name tells, and those that look like one."""
    match value:
        case Mapping():
            return {
                name: MASK if is_secret(str(name)) and not is_blank(inner) else masked(inner)
                for name, inner in value.items()
            }
        case list() | tuple():
            return [masked(inner) for inner in value]
        case str():
            return redact(value)
        case _:
            return value
