"""Forms that a remote agent writes: what a person approves there counts for that agent alone."""

from __future__ import annotations

from ai_platform_engineering.approvals.grants import covers, granted_by
from ai_platform_engineering.forms.answers import Approved
from ai_platform_engineering.forms.questions import form_of
from ai_platform_engineering.graphs.remote_agent import _waiting
from ai_platform_engineering.utils.a2a_common.codec.forms import read_form


def test_an_agent_cannot_have_the_tools_of_another_approved() -> None:
    action = {"agent": "argocd", "tool": "rollback_application", "args": {}, "remember": {}, "effect": "destructive"}
    sent = {
        "user_input": True,
        "form_id": "f",
        "input_title": "Approve?",
        "agent": "argocd",
        "action_requests": [action],
    }
    shown = form_of("id", _waiting(read_form(sent), "weather")["question"])
    assert shown.agent == "weather"
    [grant] = granted_by(shown, Approved(remember=True))
    assert not covers(grant, "argocd", "rollback_application", {"name": "web"}, "destructive")
    assert covers(grant, "weather", "rollback_application", {"name": "web"}, "destructive")
