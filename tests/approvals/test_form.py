from __future__ import annotations

import json
from typing import Any

from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.approvals.form import approval_form
from ai_platform_engineering.approvals.record import call_digest
from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.questions import form_of, question_data


def form(args: dict[str, Any], leading: dict[str, Any], effect: Effect = "destructive") -> Form:
    return approval_form("argocd", "Argo CD", "rollback", args, leading, effect)


def test_it_says_who_would_do_what_with_which_arguments() -> None:
    asked = form({"name": "web", "revision": 3}, {"name": "web"})
    assert asked.title == "Approve rollback?"
    assert asked.agent == "argocd"
    assert asked.description == (
        'Argo CD wants to call rollback with name="web", revision=3. '
        "This is destructive: it can delete or overwrite things."
    )
    assert asked.action_requests == (
        {
            "agent": "argocd",
            "tool": "rollback",
            "args": {"name": "web", "revision": 3},
            "digest": call_digest("argocd", "rollback", {"name": "web", "revision": 3}),
            "description": 'Call rollback with name="web", revision=3. '
            "This is destructive: it can delete or overwrite things.",
            "effect": "destructive",
            "remember": {"name": "web"},
        },
    )
    assert [(field.field_name, field.field_type, field.required) for field in asked.fields] == [
        ("decision", "select", True),
        ("reason", "text", False),
        ("remember", "boolean", False),
    ]
    assert asked.fields[0].field_values == ("approve", "reject")


def test_it_says_what_the_tool_does() -> None:
    assert form({}, {}, "read").description == "Argo CD wants to call rollback. This only reads."
    assert "may change things" in form({}, {}, "write").description
    assert "destructive: it" not in form({}, {}, "write").description


def test_it_says_what_would_be_remembered() -> None:
    def remembered(leading: dict[str, Any], effect: Effect = "destructive") -> str:
        return form({}, leading, effect).fields[2].field_description

    assert remembered({"name": "web"}) == (
        'Also approve every later call of rollback with name="web" in this conversation.'
    )
    assert remembered({}) == "Also approve every later call of rollback in this conversation."
    assert remembered({}, "write").endswith("in this conversation, unless it is destructive.")
    assert remembered({}, "read").endswith("in this conversation, as long as it only reads.")
    assert remembered({"zone": None}) == "Also approve every later call of rollback without zone in this conversation."
    assert remembered({"zone": None, "name": "web"}) == (
        'Also approve every later call of rollback with name="web" without zone in this conversation.'
    )


def test_it_is_one_line_and_holds_no_secret_however_long_the_arguments_are() -> None:
    asked = form({"token": "hunter2", "text": "a\nb" * 9_000, "url": "https://me:hunter2@x.org"}, {"token": "hunter2"})
    text = json.dumps(question_data(asked))
    assert "hunter2" not in text
    assert "\n" not in asked.description
    assert len(asked.description) < 400
    assert asked.action_requests[0]["args"]["text"] == "a\nb" * 9_000


def test_it_is_the_same_form_for_those_who_are_asked() -> None:
    asked = form({"name": "web"}, {"name": "web"})
    shown = form_of("id", json.loads(json.dumps(question_data(asked))), None)
    assert (shown.form_id, shown.title, shown.fields, shown.action_requests) == (
        "id",
        asked.title,
        asked.fields,
        asked.action_requests,
    )
