"""Forms and approvals, answered with buttons and modals as Slack sends them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.answers import Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.integrations.slack_bot.forms.ids import (
    INPUT,
    FormReference,
    Press,
    button_id,
    write_reference,
)
from ai_platform_engineering.integrations.slack_bot.forms.message import form_message
from ai_platform_engineering.integrations.slack_bot.places import SlackUser
from ai_platform_engineering.integrations.slack_bot.words import NOT_OPEN
from tests.integrations.slack_bot.listening_bench import ANNA, Bench, bench

TASK = "task-1"
FORM = Form(
    "form-1",
    "Create GitHub Repo",
    (FormField("name"), FormField("private", "boolean", default_value=True), FormField("topics", required=False)),
)
APPROVAL = Form(
    "form-2", "Delete it?", action_requests=({"name": "delete_repo", "args": {"name": "demo", "force": False}},)
)


@pytest.fixture
async def listeners() -> AsyncIterator[Bench]:
    async with bench() as made:
        open_forms(made)
        yield made


def open_forms(made: Bench) -> None:
    made.bot.forms = {(TASK, form.form_id): form for form in (FORM, APPROVAL)}


async def press(
    listeners: Bench, form: Form, which: Press, state: dict[str, Any] | None = None, person: str = "UANNA"
) -> httpx.Response:
    button = {
        "type": "button",
        "block_id": "buttons",
        "action_id": button_id(which),
        "value": write_reference(FormReference(TASK, form.form_id), 2000),
    }
    answer = await listeners.interaction(
        {
            "type": "block_actions",
            "user": {"id": person, "team_id": "T1"},
            "channel": {"id": "C1"},
            "container": {"type": "message", "message_ts": "2.0", "channel_id": "C1", "thread_ts": "1.0"},
            "message": {"ts": "2.0", "thread_ts": "1.0"},
            "state": {"values": state or {}},
            "actions": [button],
        }
    )
    await listeners.quiet()
    return answer


def private_texts(listeners: Bench) -> list[str]:
    return [notice["text"] for notice in listeners.slack.of("chat.postEphemeral")]


def opened(listeners: Bench) -> dict[str, Any]:
    (call,) = listeners.slack.of("views.open")
    view: dict[str, Any] = json.loads(call["view"]) if isinstance(call["view"], str) else call["view"]
    return view


def typed(view: dict[str, Any], **values: Any) -> dict[str, Any]:
    """What Slack sends of the inputs: each by its label."""
    blocks = [block for block in view["blocks"] if block["type"] == "input"]
    return {
        block["block_id"]: {INPUT: _state(block["element"], values.get(block["label"]["text"]))} for block in blocks
    }


def _state(element: dict[str, Any], value: Any) -> dict[str, Any]:
    if element["type"] == "plain_text_input":
        return {"type": element["type"], "value": element.get("initial_value") if value is None else value}
    return {"type": element["type"], "selected_option": element.get("initial_option") if value is None else value}


async def submit(
    listeners: Bench, view: dict[str, Any], state: dict[str, Any], person: str = "UANNA"
) -> httpx.Response:
    sent = {**view, "id": "V1", "state": {"values": state}}
    answer = await listeners.interaction(
        {"type": "view_submission", "user": {"id": person, "team_id": "T1"}, "view": sent}
    )
    await listeners.quiet()
    return answer


@pytest.mark.parametrize(
    ("which", "answer"),
    [("approve", Approved()), ("cancel", Rejected())],
)
async def test_an_approval_is_decided_with_a_button(listeners: Bench, which: Press, answer: object) -> None:
    assert (await press(listeners, APPROVAL, which)).text == ""
    assert listeners.bot.asked == [("answer", TASK, "form-2", answer, ANNA)]
    assert listeners.slack.calls == []


async def test_a_short_form_is_answered_in_its_message(listeners: Bench) -> None:
    blocks = {"blocks": form_message(FORM, TASK)[1]}
    await press(listeners, FORM, "submit", typed(blocks, name="demo"))
    ((_, _, form_id, answer, person),) = listeners.bot.asked
    assert (form_id, person) == ("form-1", ANNA)
    assert isinstance(answer, Submitted)
    assert (answer.values["name"], answer.values["private"]) == ("demo", True)


async def test_what_is_wrong_in_a_message_is_said_there_and_nothing_is_lost(listeners: Bench) -> None:
    form = replace(FORM, fields=(*FORM.fields[:2], FormField("size", "number")))
    listeners.bot.forms[TASK, "form-1"] = form
    blocks = {"blocks": form_message(form, TASK)[1]}
    await press(listeners, FORM, "submit", typed(blocks, name="demo", size="many"))
    ((what, task_id, again),) = listeners.bot.asked
    assert (what, task_id) == ("show_again", TASK)
    assert listeners.slack.calls == [], "the run shows it, in its turn"
    shown = json.dumps(form_message(again, task_id)[1])
    assert "demo" in shown
    assert ":warning:" in shown


async def test_a_form_is_filled_in_in_a_modal(listeners: Bench) -> None:
    await press(listeners, FORM, "fill_in")
    view = opened(listeners)
    answer = await submit(listeners, view, typed(view, name="demo"))
    assert (answer.status_code, answer.text) == (200, "")
    ((_, task_id, form_id, said, person),) = listeners.bot.asked
    assert (task_id, form_id, person) == (TASK, "form-1", ANNA)
    assert isinstance(said, Submitted)
    assert said.values["name"] == "demo"


async def test_what_is_wrong_is_said_in_the_modal(listeners: Bench) -> None:
    await press(listeners, FORM, "fill_in")
    view = opened(listeners)
    state = typed(view, name="")
    answer = (await submit(listeners, view, state)).json()
    assert answer["response_action"] == "errors"
    assert set(answer["errors"]) == {next(iter(state))}
    assert listeners.bot.asked == []


async def test_arguments_are_changed_and_a_reason_is_given_in_modals(listeners: Bench) -> None:
    await press(listeners, APPROVAL, "edit")
    view = opened(listeners)
    await submit(listeners, view, typed(view, force="true"))
    listeners.slack.calls.clear()
    await press(listeners, APPROVAL, "reject")
    view = opened(listeners)
    await submit(listeners, view, typed(view, **{"Why not?": "It is in use."}))
    assert [asked[3] for asked in listeners.bot.asked] == [Approved({"force": True}), Rejected("It is in use.")]


async def test_a_form_that_is_not_wanted_is_dismissed(listeners: Bench) -> None:
    await press(listeners, FORM, "cancel")
    assert [asked[3] for asked in listeners.bot.asked] == [Dismissed()]


@pytest.mark.parametrize("which", ["approve", "edit"])
async def test_only_those_may_answer_who_may(listeners: Bench, which: Press) -> None:
    listeners.bot.refuses = {"UEVE": "Only <@UANNA> may answer this."}
    await press(listeners, APPROVAL, which, person="UEVE")
    assert listeners.bot.asked == []
    assert listeners.slack.of("views.open") == []
    assert private_texts(listeners) == ["Only <@UANNA> may answer this."]


async def test_a_modal_of_somebody_who_may_not_says_so(listeners: Bench) -> None:
    await press(listeners, APPROVAL, "edit", person="UBOSS")
    view = opened(listeners)
    listeners.bot.refuses = {"UANNA": "Only <@UBOSS> may decide this."}
    answer = (await submit(listeners, view, typed(view, force="true"))).json()
    assert answer["response_action"] == "update"
    assert "Only <@UBOSS> may decide this." in json.dumps(answer["view"])
    await submit(listeners, view, typed(view, force="true"), person="UBOSS")
    assert [asked[4] for asked in listeners.bot.asked] == [SlackUser("T1", "UBOSS")]


async def test_a_form_that_is_not_open_any_more_says_so(listeners: Bench) -> None:
    await press(listeners, FORM, "fill_in")
    view = opened(listeners)
    listeners.bot.forms.clear()
    answer = (await submit(listeners, view, typed(view, name="demo"))).json()
    assert (answer["response_action"], answer["view"]["type"]) == ("update", "modal")
    assert NOT_OPEN in json.dumps(answer["view"])
    await press(listeners, FORM, "fill_in")
    assert private_texts(listeners) == [NOT_OPEN]
    assert listeners.bot.asked == []


async def test_an_answer_that_was_not_taken_is_told_in_the_modal_or_the_thread(listeners: Bench) -> None:
    listeners.bot.says = "Another person was faster."
    await press(listeners, FORM, "fill_in")
    view = opened(listeners)
    answer = (await submit(listeners, view, typed(view, name="demo"))).json()
    assert "Another person was faster." in json.dumps(answer["view"])
    await press(listeners, APPROVAL, "approve")
    assert private_texts(listeners) == ["Another person was faster."]


async def test_slack_has_its_answer_in_time_when_the_bot_takes_its_own(
    listeners: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ai_platform_engineering.integrations.slack_bot.listeners.forms._ANSWER_SECONDS", 0.1)
    await press(listeners, FORM, "fill_in")
    view = opened(listeners)
    listeners.bot.seconds, listeners.bot.says = 0.5, "It was too late."
    answer = await submit(listeners, view, typed(view, name="demo"))
    assert (answer.status_code, answer.text) == (200, "")
    assert private_texts(listeners) == ["It was too late."]
    (notice,) = listeners.slack.of("chat.postEphemeral")
    assert (notice["channel"], notice["thread_ts"]) == ("C1", "1.0")


async def test_a_bot_that_fails_says_so_in_the_modal(listeners: Bench, caplog: pytest.LogCaptureFixture) -> None:
    await press(listeners, FORM, "fill_in")
    view = opened(listeners)
    listeners.bot.error = RuntimeError("demo")
    answer = (await submit(listeners, view, typed(view, name="demo"))).json()
    assert "Try again" in json.dumps(answer["view"])
    assert "demo" not in caplog.text


async def test_a_button_pressed_twice_by_slack_is_pressed_once(listeners: Bench) -> None:
    payload = {
        "type": "block_actions",
        "trigger_id": "same",
        "channel": {"id": "C1"},
        "container": {"message_ts": "2.0", "thread_ts": "1.0"},
        "actions": [
            {
                "type": "button",
                "block_id": "b",
                "action_id": button_id("approve"),
                "value": write_reference(FormReference(TASK, "form-2"), 2000),
            }
        ],
    }
    for _ in range(2):
        await listeners.interaction(payload)
    await listeners.quiet()
    assert len(listeners.bot.asked) == 1
