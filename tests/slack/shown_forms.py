"""Forms to be shown in Slack: the ordinary, the odd and the far too large."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.utils.approvals.form import approval_form
from ai_platform_engineering.utils.approvals.policy import Effects
from tests import strategies
from tests.forms.declared import TYPES, declared_forms

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
    effects = Effects("argocd", "sync_application", read_only=False, destructive=True)
    form = approval_form("argocd", "Argo CD", "sync_application", args, leading or {}, effects)
    return replace(form, form_id="f1")


_long_texts = st.builds(
    lambda piece, times: piece * times,
    st.sampled_from(["a", "word ", "é", "😀", "<", "&", "\n", "`", "\x00", '{"a": ', "https://x.y/"]),
    st.sampled_from([0, 1, 7, 80, 3100]),
)
_large_fields = st.builds(
    FormField,
    field_name=_long_texts | st.sampled_from(["name", "api_token"]),
    field_type=st.sampled_from(TYPES),
    field_description=_long_texts,
    field_values=st.none()
    | st.builds(
        lambda text, times: tuple(f"{n}{text}" for n in range(times)), _long_texts, st.sampled_from([1, 150, 700])
    ),
    default_value=st.none() | _long_texts | st.lists(_long_texts, max_size=3),
    required=st.booleans(),
    value=st.none() | _long_texts | st.floats(),
    error=st.none() | _long_texts,
)
large_forms = st.builds(
    lambda fields, times, **rest: Form(
        fields=tuple(
            replace(field, field_name=f"{field.field_name}{time or ''}") for time in range(times) for field in fields
        ),
        **rest,
    ),
    fields=st.lists(_large_fields, max_size=3),
    times=st.sampled_from([1, 1, 5, 60]),
    form_id=_long_texts,
    title=_long_texts,
    description=_long_texts,
    response=_long_texts,
    action_requests=st.just(())
    | st.lists(
        st.fixed_dictionaries(
            {
                "tool": _long_texts,
                "args": st.dictionaries(_long_texts, _long_texts | st.lists(_long_texts, max_size=2), max_size=4),
            },
            optional={"remember": st.dictionaries(_long_texts, _long_texts, max_size=2)},
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
)
any_forms = declared_forms() | strategies.forms | large_forms
