"""From an approval that is to be remembered to the grants that remember it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved

GRANTS: Final = "approvals"
"""Where a conversation's state has its grants."""


def granted_by(form: Form, answer: Answer) -> tuple[Mapping[str, Any], ...]:
    """The grants that `answer` to `form` gives. A call that was changed is approved alone: a grant that covers the call
    as it was asked for would let that pass, without the change."""
    if not isinstance(answer, Approved) or not answer.remember or answer.arguments is not None:
        return ()
    return tuple(
        {
            "agent": request.get("agent"),
            "tool": request.get("tool"),
            "arguments": dict(leading),
            "effect": request.get("effect"),
        }
        for request in form.action_requests
        if isinstance(leading := request.get("remember"), Mapping)
    )
