"""A form as a message: within Slack's limits, whatever the form; what is asked and how it is answered is in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.answers import Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.integrations.slack_bot.forms.message import answered_note, form_message
from tests.forms.declared import TYPES
from tests.integrations.slack_bot.block_kit import message_problems
from tests.integrations.slack_bot.filling_in import inputs
from tests.integrations.slack_bot.shown_forms import (
    PIECES,
    REPOSITORY,
    any_forms,
    approval,
    large_approval,
    large_form,
    long,
)


def buttons(blocks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        button["text"]["text"]: button for block in blocks if block["type"] == "actions" for button in block["elements"]
    }


def read(blocks: list[dict[str, Any]]) -> str:
    return json.dumps(blocks, ensure_ascii=False)


@given(any_forms, st.text(max_size=3), st.none() | st.just("Answered by <@U1>"))
def test_every_form_obeys_the_limits_of_a_message(form: Form, task_id: str, note: str | None) -> None:
    text, blocks = form_message(form, task_id, note)
    assert message_problems(blocks, text) == []
    assert bool(buttons(blocks)) == (note is None)


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_the_largest_forms_do_too(piece: str) -> None:
    one_each = (large_form(piece, kind, 1) for kind in TYPES)
    forms = [large_approval(piece), large_form(piece, "select", 46), *one_each]
    assert [message_problems(*reversed(form_message(form, long(piece, 3_200)))) for form in forms] == [[]] * len(forms)


def test_a_short_form_is_filled_in_where_it_is_shown() -> None:
    text, blocks = form_message(REPOSITORY, "t1")
    assert text == "Input needed (Github): Create GitHub Repo"
    assert [block["label"]["text"] for block in inputs(blocks)] == ["repository", "private", "team"]
    assert list(buttons(blocks)) == ["Submit", "Cancel"]


@pytest.mark.parametrize(
    "field",
    [
        FormField("note", "multiline"),
        FormField("api_token"),
        FormField("region", "select", field_values=tuple(f"region {number}" for number in range(100))),
        FormField("note", value="two\nlines"),
    ],
)
def test_a_form_with_more_to_it_opens_a_modal(field: FormField) -> None:
    _, blocks = form_message(Form("f1", "Create", (field,)), "t1")
    assert inputs(blocks) == []
    assert list(buttons(blocks)) == ["Fill in", "Cancel"]
    assert field.field_name in read(blocks)


def test_a_longer_form_says_what_is_going_to_be_asked() -> None:
    fields = tuple(FormField(name, field_description=f"About {name}") for name in ("one", "two", "three", "four"))
    _, blocks = form_message(Form("f1", "Create", fields, "What it is for"), "t1")
    assert all(words in read(blocks) for words in ("What it is for", "About one", "four (text, required)"))


def test_errors_are_shown_at_their_fields() -> None:
    field = FormField("replicas", "number", value="many", error="`replicas` takes a number; “many” is not that.")
    _, blocks = form_message(Form("f1", "Scale", (field,), response=str(field.error)), "t1")
    assert [block["type"] for block in blocks] == ["header", "input", "context", "actions"]
    assert blocks[1]["element"]["initial_value"] == "many"
    assert "“many” is not that" in read(blocks[2:3])


def test_a_form_that_is_shown_again_has_other_blocks() -> None:
    again = replace(REPOSITORY, fields=(replace(REPOSITORY.fields[0], value="demo"), *REPOSITORY.fields[1:]))
    before, after = (inputs(form_message(form, "t1")[1]) for form in (REPOSITORY, again))
    assert {block["block_id"] for block in before}.isdisjoint(block["block_id"] for block in after)


def test_nothing_in_a_form_calls_people() -> None:
    form = Form("f1", "<!channel>", (FormField("name", error="<!here>"),), "<@U1> & co", "Go to <https://x.y|here>")
    text, blocks = form_message(form, "t1")
    shown = [part["text"] for block in blocks for part in [block.get("text"), *block.get("elements", [])] if part]
    markdown = [part for part in (text, *map(str, shown)) if "<" in part]
    assert markdown == ["Input needed: <!channel>"], "the header is plain text"
    assert "&lt;@U1&gt; &amp; co" in read(blocks)


def test_an_approval_says_what_would_be_done() -> None:
    _, blocks = form_message(approval({"application": "guestbook", "prune": True}), "t1")
    assert all(words in read(blocks) for words in ("Argocd would call sync_application", "guestbook", "destructive"))
    assert list(buttons(blocks)) == ["Approve", "Reject...", "Edit...", "Always approve"]
    assert [button.get("style") for button in buttons(blocks).values()] == ["primary", None, None, None]
    assert inputs(blocks) == []


def test_an_approval_says_how_much_it_does_not_show() -> None:
    _, blocks = form_message(approval({f"argument {number}": "x" * 190 for number in range(30)}), "t1")
    assert "argument 0" in read(blocks)
    assert re.search(r"\.\.\. and \d+ more lines", read(blocks))


def test_what_always_means_is_confirmed() -> None:
    _, blocks = form_message(approval({"application": "guestbook"}, {"application": "guestbook"}), "t1")
    confirm = buttons(blocks)["Always approve"]["confirm"]
    assert 'Argocd may call sync_application with application = "guestbook"' in confirm["text"]["text"]


def test_what_always_means_is_said_whole_where_a_dialog_is_too_small() -> None:
    leading = {name: name * 190 for name in "abc"}
    _, blocks = form_message(approval(leading, leading), "t1")
    assert all(value in read(blocks[-2:]) for value in leading.values())


def test_several_actions_are_decided_as_they_are() -> None:
    request = approval({"application": "guestbook"}).action_requests[0]
    _, blocks = form_message(Form("f1", "Approve 2 actions?", action_requests=(request, request)), "t1")
    assert list(buttons(blocks)) == ["Approve", "Reject..."]


def test_a_call_without_arguments_has_nothing_to_edit() -> None:
    assert "Edit..." not in buttons(form_message(approval({}), "t1")[1])


def test_a_credential_that_is_proposed_is_not_shown() -> None:
    form = Form("f1", "Sign in", (FormField("api_token", default_value="hunter2-hunter2"),))
    assert "hunter2" not in read(form_message(form, "t1")[1])


def test_a_closed_form_shows_the_note_alone() -> None:
    note = answered_note(REPOSITORY, Submitted({"repository": "demo", "private": False}), "<@U1>")
    assert note == "Answered by <@U1>: repository: demo, private: no"
    text, blocks = form_message(REPOSITORY, "t1", note)
    assert text.endswith(note)
    assert [block["type"] for block in blocks] == ["header", "section", "context"]
    assert blocks[-1]["elements"][0]["text"] == note


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (Approved(), "Approved by <@U1>"),
        (Approved({"prune": False}), "Approved by <@U1> with prune = false"),
        (Rejected("not on a Friday"), "Rejected by <@U1>: not on a Friday"),
        (Rejected(), "Rejected by <@U1>"),
        (Dismissed("<!channel>"), "Canceled by <@U1>: &lt;!channel&gt;"),
        (Submitted({}), "Answered by <@U1>: as proposed"),
    ],
)
def test_notes_say_who_said_what(answer: Any, note: str) -> None:
    assert answered_note(approval({"prune": True}), answer, "<@U1>") == note


def test_a_note_says_what_is_remembered() -> None:
    note = answered_note(approval({}, {"application": "web"}), Approved(remember=True), "<@U1>")
    assert note.startswith("Approved by <@U1>, from now on: Argocd may call sync_application with application")


def test_a_note_leaves_secrets_out() -> None:
    form = Form("f1", "Sign in", (FormField("api_token"),))
    assert "hunter2" not in answered_note(form, Submitted({"api_token": "hunter2"}), "<@U1>")
