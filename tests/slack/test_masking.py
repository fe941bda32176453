"""Credentials in the arguments of a call: whoever decides is told that there is one, and nobody sees it."""

from __future__ import annotations

import json
from typing import Any

from ai_platform_engineering.events import Form, InputRequired
from ai_platform_engineering.integrations.slack_bot.forms.ids import INPUT
from ai_platform_engineering.integrations.slack_bot.forms.message import form_message
from ai_platform_engineering.integrations.slack_bot.forms.modal import modal
from ai_platform_engineering.integrations.slack_bot.forms.reading import read_submission
from ai_platform_engineering.integrations.slack_bot.forms.words import answered_note
from ai_platform_engineering.integrations.slack_bot.operations import PostForm
from ai_platform_engineering.integrations.slack_bot.places import Place
from ai_platform_engineering.utils.forms.answers import Approved
from tests.slack.scenes import Scene

SECRETS = ("hunter22", "k-98765", "ghp_0123456789abcdef")
ARGUMENTS: dict[str, Any] = {
    "name": "ada",
    "password": SECRETS[0],
    "settings": {"region": "eu", "access": [{"api_key": SECRETS[1]}]},
    "command": f"login --with {SECRETS[2]}",
    "token": None,
}
FORM = Form(
    "form-1",
    "Create the account?",
    action_requests=({"name": "create_user", "args": ARGUMENTS, "remember": {"password": SECRETS[0]}},),
)
PLACE = Place("T1", "C1", "1.0")


def check(shown: object) -> None:
    text = json.dumps(shown)
    assert [secret for secret in SECRETS if secret in text] == []


def test_nobody_sees_them_in_the_question_and_what_is_below_it() -> None:
    text, blocks = form_message(FORM, "task-1")
    check([text, blocks])
    assert 'password: \\"***\\"' in json.dumps(blocks)
    assert "region" in json.dumps(blocks)
    check(form_message(FORM, "task-1", "Answered."))
    check(answered_note(FORM, Approved(None, True), "<@U1>"))
    check(answered_note(FORM, Approved({"settings": ARGUMENTS["settings"]}), "<@U1>"))


def test_nobody_sees_them_in_words() -> None:
    scene = Scene(lambda operation: "bad_blocks" if isinstance(operation, PostForm) else "done")
    scene.hear(InputRequired((FORM,)))
    assert "create_user" in scene.text
    check(scene.text)


def test_nobody_sees_them_in_a_modal_and_they_stay_when_something_else_is_changed() -> None:
    for kind in ("edit", "reject"):
        check(modal(FORM, "task-1", PLACE, kind))  # type: ignore[arg-type]
    view = modal(FORM, "task-1", PLACE, "edit")
    inputs = [block for block in view["blocks"] if block["type"] == "input"]
    values = {block["block_id"]: {INPUT: {"value": block["element"].get("initial_value")}} for block in inputs}
    (name,) = [block for block in inputs if block["label"]["text"] == "name"]
    values[name["block_id"]] = {INPUT: {"value": "bob"}}
    assert read_submission(FORM, {**view, "state": {"values": values}}) == Approved({"name": "bob"})
