"""What comes back from Slack: exactly what people entered, or what is wrong with it; never something else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.events import FieldRules, Form, FormField
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.filling import FilledForm, fill
from ai_platform_engineering.integrations.slack_bot.forms.ids import FormReference
from ai_platform_engineering.integrations.slack_bot.forms.message import form_message
from ai_platform_engineering.integrations.slack_bot.forms.modal import modal
from ai_platform_engineering.integrations.slack_bot.forms.reading import (
    NOTHING_CHANGED,
    OpenModal,
    PressedFormButton,
    read_button,
    read_message_state,
    read_press,
    read_submission,
)
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from tests.forms.declared import answered_forms, declared_forms, near_values
from tests.integrations.slack_bot.filling_in import CannotEnterError, NotSentError, entering, inputs, pressed, submitted
from tests.integrations.slack_bot.shown_forms import REPOSITORY, any_forms, approval
from tests.strategies import json_values

PLACE = ThreadPlace("T1", "C1", "1712.0001")
Entry = str | list[str]


def as_entered(value: Any) -> Entry:
    """What a person types or chooses who means `value`."""
    match value:
        case bool():
            return "Yes" if value else "No"
        case list():
            return [str(as_entered(item)) for item in dict.fromkeys(map(str, value))]
        case str():
            return value
        case _:
            return json.dumps(value)


def sent(form: Form, entries: dict[str, Any], kind: Any = "form") -> Answer | dict[str, str]:
    """The answer to a modal in which `entries` were made, by label."""
    view = modal(form, "t1", PLACE, kind)
    blocks = {block["label"]["text"]: block["block_id"] for block in inputs(view["blocks"])}
    answer = read_submission(form, submitted(view, {blocks[label]: entry for label, entry in entries.items()}))
    if isinstance(answer, dict):
        labels = {block: label for label, block in blocks.items()}
        return {labels[block]: sentence for block, sentence in answer.items()}
    return answer


def can_enter(element: dict[str, Any], entry: Entry) -> bool:
    try:
        entering(element, entry)
    except CannotEnterError:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: true is not 1."""
    return repr(one) == repr(other)


@given(answered_forms())
def test_a_modal_gives_exactly_what_was_entered(answered: tuple[Form, dict[str, Any]]) -> None:
    form, values = answered
    answer = sent(form, {name: as_entered(value) for name, value in values.items()})
    expected = {
        name: list(dict.fromkeys(value)) if isinstance(value, list) else value for name, value in values.items()
    }
    assert isinstance(answer, Submitted)
    assert same(dict(answer.values), expected)


def meant(field: FormField, element: dict[str, Any], entry: Entry | None) -> Any:
    """What stands in an input, in the words of the form. Several options are typed on a line each."""
    if entry and element["type"] == "multi_static_select":
        return entry
    text = element.get("initial_value") if not entry else entry if isinstance(entry, str) else "\n".join(entry)
    return text.split("\n") if text and "\n" in text and field.field_type == "multiselect" else text


@given(declared_forms(), st.data())
def test_a_modal_means_what_the_form_makes_of_it(form: Form, data: st.DataObject) -> None:
    view = modal(form, "t1", PLACE)
    fields = {block["block_id"]: field for block, field in zip(inputs(view["blocks"]), form.fields, strict=True)}
    entries: dict[str, Entry] = {}
    values: dict[str, Any] = {}
    for block in inputs(view["blocks"]):
        name, element, field = block["block_id"], block["element"], fields[block["block_id"]]
        entry = as_entered(data.draw(near_values, label=field.field_name))
        if entry and can_enter(element, entry) and data.draw(st.booleans()):
            entries[name] = entry
        if name in entries or not {"initial_option", "initial_options"} & element.keys():
            values[field.field_name] = meant(field, element, entries.get(name))
    try:
        payload = submitted(view, entries)
    except NotSentError:
        return
    answer, expected = read_submission(form, payload), fill(form, values)
    if isinstance(expected, FilledForm):
        assert same(answer, Submitted(expected.values))
    else:
        wrong = {field.field_name for field in expected.form.fields if field.error}
        assert isinstance(answer, dict)
        assert {fields[block].field_name for block in answer} == wrong


@given(any_forms)
def test_a_form_that_is_sent_as_it_was_shown_says_what_is_proposed(form: Form) -> None:
    for blocks in (form_message(form, "t1")[1], modal(form, "t1", PLACE)["blocks"]):
        if not inputs(blocks):
            continue
        try:
            payload = submitted({"blocks": blocks}, {})
        except NotSentError:
            continue
        proposed = fill(form, {})
        if isinstance(proposed, FilledForm) and not form.action_requests:
            assert same(read_message_state(form, payload), Submitted(proposed.values))


@pytest.mark.parametrize(
    ("field", "entry", "value"),
    [
        (FormField("a", "number"), "2.50", 2.5),
        (FormField("a", "url"), " https://example.com ", "https://example.com"),
        (FormField("a", "boolean"), "No", False),
        (FormField("a", "select", field_values=("x", "y")), "y", "y"),
        (FormField("a", "multiselect"), "one\ntwo, too\n", ["one", "two, too"]),
        (FormField("a", "multiselect"), "one, two", ["one", "two"]),
        (FormField("a", "multiselect", field_values=tuple(map(str, range(4_000)))), "7\n3999", ["7", "3999"]),
        (FormField("a", "select", field_values=tuple(map(str, range(250)))), "249", "249"),
        (FormField("a", "multiline"), "  two\n lines", "  two\n lines"),
    ],
)
def test_values_of_every_type(field: FormField, entry: str, value: Any) -> None:
    assert same(sent(Form("f1", "Create", (field,)), {"a": entry}), Submitted({"a": value}))


def test_options_that_look_the_same_are_told_apart() -> None:
    long = [f"{'x' * 80} {number}" for number in range(2)]
    form = Form("f1", "Create", (FormField("a", "select", field_values=tuple(long)),))
    view = modal(form, "t1", PLACE)
    block = view["blocks"][-1]
    state = {"values": {block["block_id"]: {"form.input": {"selected_option": block["element"]["options"][1]}}}}
    assert read_submission(form, {**view, "state": state}) == Submitted({"a": long[1]})


def test_what_is_wrong_is_said_at_its_input() -> None:
    rules = FieldRules(pattern="[a-z]+")
    form = Form("f1", "Create", (FormField("name", rules=rules), FormField("mail", "email"), FormField("fine")))
    errors = sent(form, {"name": "Demo!", "mail": "nobody", "fine": "yes"})
    assert errors == {
        "name": "`name` takes text that matches the pattern `[a-z]+`; “Demo!” does not.",
        "mail": "`mail` takes an e-mail address like name@example.com; “nobody” is not that.",
    }


def test_what_is_wrong_with_a_field_that_is_not_there_is_said_at_the_last_one() -> None:
    form = Form("f1", "Create", tuple(FormField(f"field {number}") for number in range(46)))
    errors = sent(form, {f"field {number}": "x" for number in range(45)})
    assert errors == {"field 44": "`field 45` is required."}


def test_a_choice_can_be_taken_back() -> None:
    field = FormField("a", "multiselect", field_values=("x", "y"), default_value=["x"], required=False)
    assert sent(Form("f1", "Create", (field,)), {"a": []}) == Submitted({"a": []})
    assert sent(Form("f1", "Create", (replace(field, default_value=None),)), {}) == Submitted({})


def test_a_credential_is_taken_and_not_repeated() -> None:
    form = Form("f1", "Sign in", (FormField("api_token", rules=FieldRules(min_length=20)),))
    assert "hunter2" not in str(sent(form, {"api_token": "hunter2"}))
    assert sent(form, {"api_token": "h" * 20}) == Submitted({"api_token": "h" * 20})


def test_a_credential_that_is_proposed_is_kept() -> None:
    form = Form("f1", "Sign in", (FormField("api_token", default_value="hunter2"),))
    assert sent(form, {}) == Submitted({"api_token": "hunter2"})


def test_a_message_takes_an_answer() -> None:
    _, blocks = form_message(REPOSITORY, "t1")
    name = inputs(blocks)[0]["block_id"]
    payload = pressed(blocks, "Submit", {name: "demo"})
    assert read_button(payload) == PressedFormButton("submit", FormReference("t1", "f1"))
    assert read_press(REPOSITORY, "submit", payload) == Submitted({"repository": "demo", "private": True})


def test_what_was_typed_in_a_message_stays_there() -> None:
    fields = (FormField("replicas", "number"), FormField("name"), FormField("team", "select", field_values=("x", "y")))
    form = Form("f1", "Scale", fields)
    _, blocks = form_message(form, "t1")
    replicas, _, team = (block["block_id"] for block in inputs(blocks))
    again = read_message_state(form, pressed(blocks, "Submit", {replicas: "many", team: "y"}))
    assert isinstance(again, Form)
    assert [bool(field.error) for field in again.fields] == [True, True, False]
    _, shown = form_message(again, "t1")
    assert [block["element"].get("initial_value") for block in inputs(shown)] == ["many", None, None]
    assert inputs(shown)[2]["element"]["initial_option"]["text"]["text"] == "y"


@pytest.mark.parametrize(
    ("text", "press", "meaning"),
    [
        ("Approve", "approve", Approved()),
        ("Always approve", "always", Approved(remember=True)),
        ("Reject...", "reject", OpenModal("reject")),
        ("Edit...", "edit", OpenModal("edit")),
        ("Show all", "show_all", OpenModal("show_all")),
    ],
)
def test_the_buttons_of_an_approval(text: str, press: Any, meaning: Any) -> None:
    form = approval({"application": "web", "note": "n" * 300}, {"application": "web"})
    payload = pressed(form_message(form, "t1")[1], text)
    assert read_button(payload) == PressedFormButton(press, FormReference("t1", "f1"))
    assert read_press(form, press, payload) == meaning


@pytest.mark.parametrize(
    ("text", "press", "meaning"), [("Fill in", "fill_in", OpenModal("form")), ("Cancel", "cancel", Dismissed())]
)
def test_the_buttons_of_a_longer_form(text: str, press: Any, meaning: Any) -> None:
    form = Form("f1", "Note", (FormField("note", "multiline"),))
    payload = pressed(form_message(form, "t1")[1], text)
    assert read_button(payload) == PressedFormButton(press, FormReference("t1", "f1"))
    assert read_press(form, press, payload) == meaning


def test_what_is_not_offered_is_not_remembered() -> None:
    several = replace(approval({}), action_requests=approval({}).action_requests * 2)
    assert read_press(several, "always", {}) == Approved()


def test_a_rejection_has_a_reason_or_none() -> None:
    form = approval({"application": "web"})
    assert sent(form, {"Why not?": " not on a Friday\n"}, "reject") == Rejected("not on a Friday")
    assert sent(form, {}, "reject") == Rejected()


@pytest.mark.parametrize(
    ("entries", "changed"),
    [
        ({"application": "guestbook"}, {"application": "guestbook"}),
        ({"application": "true"}, {"application": "true"}),
        ({"application": ""}, {"application": ""}),
        ({"prune": "false", "limit": "3"}, {"prune": False}),
        ({"prune": "1"}, {"prune": 1}),
        ({"prune": "null"}, {"prune": None}),
        ({"labels": '{"a": [1]}'}, {"labels": {"a": [1]}}),
        ({"token": "new"}, {"token": "new"}),
    ],
)
def test_only_what_was_changed_is_sent(entries: dict[str, Any], changed: dict[str, Any]) -> None:
    args = {"application": "web", "prune": True, "limit": 3, "labels": {"a": 1}, "token": "***", "body": "x" * 3_100}
    assert same(sent(approval(args), entries, "edit"), Approved(changed))


@pytest.mark.parametrize("entries", [{}, {"labels": '{"a":1}'}, {"application": "web"}])
def test_an_edit_that_changes_nothing_is_no_decision(entries: dict[str, Any]) -> None:
    form = approval({"application": "web", "labels": {"a": 1}})
    assert sent(form, entries, "edit") == {"application": NOTHING_CHANGED}


@pytest.mark.parametrize("text", ["{", "yes", ""])
def test_arguments_that_are_no_texts_are_json(text: str) -> None:
    form = approval({"application": "web", "prune": True})
    errors = sent(form, {"prune": text, "application": "other"}, "edit")
    assert errors == {"prune": "`prune` takes JSON, for example true."}


def test_an_approval_that_is_filled_in_like_a_form_is_decided() -> None:
    form = approval({"application": "web"})
    assert sent(form, {"decision": "reject", "reason": "no"}) == Rejected("no")
    assert sent(form, {"decision": "approve", "remember": "Yes"}) == Approved(remember=True)


@given(any_forms, json_values, st.sampled_from(["form.modal.form", "form.modal.edit", "form.modal.reject", "other"]))
def test_garbage_is_read_without_harm(form: Form, garbage: Any, callback: str) -> None:
    values = {"form.field.0.00": {"form.input": garbage}, "form.field.99.00": garbage, "x": garbage}
    for state in (garbage, {"values": garbage}, {"values": values}):
        view = {"callback_id": callback, "state": state, "blocks": garbage}
        assert isinstance(read_submission(form, view), Answer | dict)
        assert isinstance(read_message_state(form, {"state": state}), Answer | Form)
    assert read_button({"actions": garbage}) is None
    assert read_button({"actions": [garbage]}) is None
