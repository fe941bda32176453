"""Forms to be shown in Slack: the ordinary, the odd and the far too large."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ai_platform_engineering.approvals.form import approval_form
from ai_platform_engineering.events import FieldType, Form, FormField
from tests import strategies
from tests.forms.declared import declared_forms

REPOSITORY = Form(
    "f1",
    "Create GitHub Repo",
    (
        FormField("repository", "text", "Name of the new repository"),
        FormField("private", "boolean", default_value=True),
        FormField("team", "select", field_values=("platform", "payments"), required=False),
    ),
    "Creates a GitHub repository.",
    agent="github",
)


def approval(args: dict[str, Any], leading: dict[str, Any] | None = None) -> Form:
    form = approval_form("argocd", "Argo CD", "sync_application", args, leading or {}, "destructive")
    return replace(form, form_id="f1")


PIECES = ["word ", "😀", "&", "\n", "\x00", "https://x.y/"]
"""What long texts are made of: each makes another limit be the first one that is broken."""


def long(piece: str, length: int) -> str:
    return (piece * length)[:length]


def large_form(piece: str, kind: FieldType, fields: int) -> Form:
    """A form that is too large everywhere; only its names differ."""
    text = long(piece, 3_200)
    options = tuple(f"{number} {long(piece, 80)}" for number in range(150))
    asked = (
        FormField(f"{number} {text}", kind, text, options, options[0], number % 2 == 0, text or None, error=text)
        for number in range(fields)
    )
    return Form(
        text, text, tuple(asked), text, text, text, ({"tool": text, "args": dict.fromkeys(options[:30], text)},)
    )


def large_approval(piece: str) -> Form:
    text = long(piece, 3_200)
    arguments = {f"{number} {text}": [text] if number % 2 else text for number in range(50)}
    request = {"agent": text, "tool": text, "args": arguments, "remember": arguments}
    return Form(text, text, (), text, text, text, (request,))


any_forms = declared_forms() | strategies.forms
