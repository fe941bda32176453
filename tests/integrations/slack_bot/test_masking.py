"""Credentials in the arguments of a call: the form shows that there is one, and never its value.

They are taken out on the way into the state, so what is made of it need not know of them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from ai_platform_engineering.events import Event, Form, InputRequired
from ai_platform_engineering.events_json import Asked, Line
from ai_platform_engineering.forms.answers import Answer, Approved
from ai_platform_engineering.integrations.slack_bot.forms.arguments import masked_form
from ai_platform_engineering.integrations.slack_bot.forms.ids import INPUT
from ai_platform_engineering.integrations.slack_bot.forms.message import answered_note, form_message
from ai_platform_engineering.integrations.slack_bot.forms.modal import modal
from ai_platform_engineering.integrations.slack_bot.forms.reading import read_submission
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.integrations.slack_bot.preview.player import moments_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import PostForm, UpdateForm
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import CLOSED_NOTE
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    OpenForm,
    PendingOperation,
    State,
    from_json,
    to_json,
)
from tests.integrations.slack_bot.bot_world import ANNA, World, incoming
from tests.integrations.slack_bot.scenes import Scene, answers
from tests.integrations.slack_bot.shown_forms import any_forms

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
PLACE = ThreadPlace("T1", "C1", "1.0")


def check(shown: object) -> None:
    text = json.dumps(shown, default=repr)
    assert [secret for secret in SECRETS if secret in text] == []


def heard(*events: Event) -> State:
    scene = Scene()
    scene.hear(InputRequired((FORM,)), *events)
    return scene.driver.state


def kept() -> State:
    """What a bot has kept that did not take them out, when it was killed while it showed the form."""
    form = OpenForm(FORM, "1.0", shown=FORM, with_errors=replace(FORM, response="That does not fit."))
    return from_json(to_json(State(forms=(form,), pending=PendingOperation(1, "form_update", form=FORM))))


@pytest.fixture(params=[heard, kept])
def taken(request: pytest.FixtureRequest) -> Form:
    """The form as the bot has it, from the stream and from its store."""
    state: State = request.param()
    return state.forms[0].form


@pytest.mark.parametrize("state", [heard(), heard(*answers("m1", "No answer came in time.")), kept()])
def test_nothing_that_the_bot_knows_holds_them(state: State) -> None:
    check(to_json(state))
    assert "create_user" in to_json(state)


def test_they_are_hidden_in_the_question(taken: Form) -> None:
    text, blocks = form_message(taken, "task-1")
    check([text, blocks])
    assert 'password: \\"***\\"' in json.dumps(blocks)
    assert "region" in json.dumps(blocks)


@pytest.mark.parametrize(
    "answer", [Approved(), Approved(None, True), Approved({"settings": ARGUMENTS["settings"]})], ids=repr
)
def test_they_are_hidden_in_the_note_below_it(taken: Form, answer: Answer) -> None:
    note = answered_note(taken, answer, "<@U1>")
    check([note, form_message(taken, "task-1", note)])


def test_they_are_hidden_in_text() -> None:
    scene = Scene(lambda operation: "bad_blocks" if isinstance(operation, PostForm) else "done")
    scene.hear(InputRequired((FORM,)))
    assert "create_user" in scene.text
    check(scene.text)


def test_they_are_hidden_when_it_is_over() -> None:
    scene = Scene()
    scene.hear(InputRequired((FORM,)), *answers("m1", "No answer came in time."))
    scene.driver.finish()
    (update,) = scene.done(UpdateForm)
    assert isinstance(update, UpdateForm)
    assert update.note == CLOSED_NOTE
    check([repr(scene.driver.operations), form_message(update.form, "task-1", update.note)])


def test_they_are_hidden_in_a_preview() -> None:
    said = (Asked("create the account"), InputRequired((FORM,)), Asked("approve always"), *answers("m1", "Done."))
    moments = moments_of([Line(item) for item in said])
    assert "create_user" in repr(moments)
    check(repr(moments))


async def test_they_are_hidden_in_the_form_of_the_bot() -> None:
    world = World(lambda _: [[InputRequired((FORM,))], answers("m1", "Done.")])
    await world.bot.take(incoming())
    await world.until(lambda: any(shown.form for shown in world.slack.messages) and not world.bot.open_threads)
    found = await world.bot.form("task-1", "form-1", ANNA)
    assert isinstance(found, Form)
    check([repr(found), repr(world.store.open_runs())])
    await world.end()


def sent(form: Form, **typed: str) -> Answer | dict[str, str]:
    """What comes of the modal in which that was typed."""
    view = modal(form, "task-1", PLACE, "edit")
    inputs = [block for block in view["blocks"] if block["type"] == "input"]
    values = {
        block["block_id"]: {
            INPUT: {"value": typed.get(block["label"]["text"], block["element"].get("initial_value"))},
        }
        for block in inputs
    }
    return read_submission(form, {**view, "state": {"values": values}})


def test_they_are_hidden_in_a_modal_and_stay_when_another_value_is_changed(taken: Form) -> None:
    for kind in ("edit", "reject"):
        check(modal(taken, "task-1", PLACE, kind))  # type: ignore[arg-type]
    assert sent(taken, name="bob") == Approved({"name": "bob"})
    assert sent(taken, password="another") == Approved({"password": "another"})


def test_what_the_supervisor_does_not_know_to_be_masked_is_not_there_to_be_changed(taken: Form) -> None:
    inputs = {
        block["label"]["text"]: block["element"].get("initial_value")
        for block in modal(taken, "task-1", PLACE, "edit")["blocks"]
        if block["type"] == "input"
    }
    assert inputs == {"command": None, "name": "ada", "password": None, "settings": None, "token": "null"}
    check(sent(taken, settings="{"))


def test_what_the_supervisor_masked_can_be_changed_around_the_mask() -> None:
    masked = masked_form(Form("form-1", "Create?", action_requests=({"args": {"settings": {"key": "***", "a": 1}}},)))
    changed = {"settings": {"key": "***", "a": 2}}
    assert sent(masked, settings=json.dumps(changed["settings"])) == Approved(changed)


@given(any_forms)
def test_a_form_that_is_masked_stays_as_it_is(form: Form) -> None:
    """Else a bot that is started again would write it anew."""
    masked = masked_form(form)
    assert masked_form(masked) == masked
