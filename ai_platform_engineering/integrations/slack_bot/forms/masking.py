"""Credentials in a call that waits for approval. Everybody in the channel sees the question, so that it names them and
does not show them, also where a supervisor did not see to that."""

from __future__ import annotations

from dataclasses import replace

from ai_platform_engineering.events import Form
from ai_platform_engineering.utils.forms.questions import without_credentials


def masked_form(form: Form) -> Form:
    """The form as it may be shown. What is done is never made from it."""
    return replace(form, action_requests=without_credentials(form.action_requests))
