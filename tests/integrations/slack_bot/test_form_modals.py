"""A form as a modal: within Slack's limits, whatever the form, and each field as the input that suits it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.events import FieldRules, Form, FormField
from ai_platform_engineering.integrations.slack_bot.forms.ids import (
    METADATA_LENGTH,
    VALUE_LENGTH,
    FormReference,
    block_id,
    read_block_id,
    read_button_id,
    read_modal_id,
    read_reference,
    write_reference,
)
from ai_platform_engineering.integrations.slack_bot.forms.message import form_message
from ai_platform_engineering.integrations.slack_bot.forms.modal import modal
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from tests.forms.declared import TYPES
from tests.integrations.slack_bot.block_kit import view_problems
from tests.integrations.slack_bot.filling_in import inputs, options
from tests.integrations.slack_bot.shown_forms import PIECES, REPOSITORY, any_forms, approval, large_approval, large_form
from tests.strategies import json_values

PLACE = ThreadPlace("T1", "C1", "1712.0001")
KINDS = ("form", "edit", "reject", "show_all")


def opened(*fields: FormField) -> list[dict[str, Any]]:
    view = modal(Form("f1", "Create", fields), "t1", PLACE)
    assert view_problems(view) == []
    return inputs(view["blocks"])


def element(field: FormField) -> dict[str, Any]:
    return dict(opened(field)[0]["element"])


@given(any_forms, st.sampled_from(KINDS))
def test_every_form_obeys_the_limits_of_a_modal(form: Form, kind: Any) -> None:
    assert view_problems(modal(form, "t1", PLACE, kind)) == []


@pytest.mark.long
@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_the_largest_forms_do_too(piece: str) -> None:
    forms = [large_form(piece, "multiselect", 46), *(large_form(piece, kind, 2) for kind in TYPES)]
    assert [view_problems(modal(form, "t1", PLACE)) for form in forms] == [[]] * len(forms)
    assert [view_problems(modal(large_approval(piece), "t1", PLACE, kind)) for kind in KINDS[1:]] == [[], [], []]


def shown_text(view: dict[str, Any]) -> str:
    return "".join(block["elements"][0]["elements"][0]["text"] for block in view["blocks"] if "elements" in block)


def test_a_long_argument_is_shown_in_full() -> None:
    body = "\n".join(f"line {number}" for number in range(3_000))
    form = approval({"application": "web", "body": body})
    assert "Show all" in json.dumps(form_message(form, "t1")[1])
    view = modal(form, "t1", PLACE, "show_all")
    assert view_problems(view) == []
    assert "submit" not in view
    assert "\n".join(f"    | line {number}" for number in range(3_000)) in shown_text(view)
    assert "Show all" not in json.dumps(form_message(approval({"application": "web"}), "t1")[1])


def test_what_no_view_can_hold_is_said_to_be_elsewhere() -> None:
    view = modal(approval({"body": "ü" * 190_000}), "t1", PLACE, "show_all")
    assert view_problems(view) == []
    assert "more characters do not fit here" in json.dumps(view)
    assert "/approvals/t1/f1" in json.dumps(view)


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        (FormField("a"), "plain_text_input"),
        (FormField("a", "multiline"), "plain_text_input"),
        (FormField("a", "number"), "number_input"),
        (FormField("a", "boolean"), "radio_buttons"),
        (FormField("a", "select", field_values=("x", "y")), "static_select"),
        (FormField("a", "select"), "plain_text_input"),
        (FormField("a", "multiselect", field_values=("x", "y")), "multi_static_select"),
        (FormField("a", "multiselect"), "plain_text_input"),
        (FormField("a", "url"), "url_text_input"),
        (FormField("a", "email"), "email_text_input"),
    ],
)
def test_each_type_has_its_input(field: FormField, kind: str) -> None:
    assert element(field)["type"] == kind
    assert element(field).get("multiline", False) == (
        field.field_type in ("multiline", "multiselect") and "text" in kind
    )


@pytest.mark.parametrize(
    ("field", "key", "initial"),
    [
        (FormField("a", value="demo", default_value="other"), "initial_value", "demo"),
        (FormField("a", default_value="other"), "initial_value", "other"),
        (FormField("a", value=8080), "initial_value", "8080"),
        (FormField("a", "number", value=2.5), "initial_value", "2.5"),
        (FormField("a", "number", value=2.0), "initial_value", "2"),
        (FormField("a", "number", value="many"), "initial_value", "many"),
        (FormField("a", "number", value=1e300), "initial_value", "1e+300"),
        (FormField("a", "url", value="no address"), "initial_value", "no address"),
        (FormField("a", "multiselect", value=["x", "y"]), "initial_value", "x\ny"),
    ],
)
def test_what_is_proposed_stands_in_the_input(field: FormField, key: str, initial: str) -> None:
    assert element(field)[key] == initial


def test_what_is_proposed_is_chosen() -> None:
    one, several, truth = opened(
        FormField("one", "select", field_values=("x", "y"), value="Y"),
        FormField("several", "multiselect", field_values=("x", "y", "z"), default_value=["x", "z"]),
        FormField("truth", "boolean", value=False),
    )
    assert one["element"]["initial_option"]["text"]["text"] == "y"
    assert [option["text"]["text"] for option in several["element"]["initial_options"]] == ["x", "z"]
    assert truth["element"]["initial_option"]["text"]["text"] == "No"


@pytest.mark.parametrize(
    "field", [FormField("a", "number", default_value="many"), FormField("a", "select", field_values=("x",), value="z")]
)
def test_what_cannot_be_chosen_is_not_proposed(field: FormField) -> None:
    assert not any(key.startswith("initial") for key in element(field))


@pytest.mark.parametrize("value", ["x" * 3_001, "with\x07bell"])
def test_what_an_input_cannot_hold_is_kept_when_it_is_left_empty(value: str) -> None:
    block = opened(FormField("a", value=value))[0]
    assert "initial_value" not in block["element"]
    assert block["optional"]
    assert "Leave it empty to keep the proposed value." in block["hint"]["text"]


@pytest.mark.parametrize("kind", ["text", "select", "multiselect", "boolean"])
def test_a_credential_is_never_proposed(kind: Any) -> None:
    field = FormField("api_token", kind, field_values=("yes", "no"), value="yes", default_value="yes")
    block = opened(field)[0]
    assert not any(key.startswith("initial") for key in block["element"])
    assert "not shown in the thread" in block["hint"]["text"]


def test_a_number_has_its_bounds() -> None:
    whole = element(FormField("a", "number", rules=FieldRules(minimum=0.5, maximum=9, integer=True)))
    assert (whole["is_decimal_allowed"], whole["min_value"], whole["max_value"]) == (False, "1", "9")
    broken = element(FormField("a", "number", rules=FieldRules(minimum=0.5, maximum=2.25)))
    assert (broken["is_decimal_allowed"], broken["min_value"], broken["max_value"]) == (True, "0.5", "2.25")
    assert "min_value" not in element(FormField("a", "number", rules=FieldRules(minimum=3, maximum=2)))


def test_what_is_asked_is_said() -> None:
    block = opened(FormField("replicas", "number", "How many", rules=FieldRules(minimum=1, integer=True)))[0]
    assert block["label"]["text"] == "replicas"
    assert block["hint"]["text"] == "How many. It takes a whole number of at least 1."
    assert not block["optional"]
    assert opened(FormField("a", required=False))[0]["optional"]
    proposed = opened(FormField("a", required=False, value="demo"))[0]
    assert proposed["hint"]["text"] == "Left empty, it gets the proposed value."


def test_options_are_cut_and_keep_their_places() -> None:
    long = [f"{'x' * 80} {number}" for number in range(3)]
    shown = options(element(FormField("a", "select", field_values=("", *long, long[0]))))
    assert [len(option["text"]["text"]) for option in shown] == [75, 75, 75]
    assert [option["value"] for option in shown] == ["1", "2", "3"]


def test_more_options_than_a_list_takes_are_grouped() -> None:
    menu = element(FormField("a", "select", field_values=tuple(map(str, range(250))), value="249"))
    assert [len(group["options"]) for group in menu["option_groups"]] == [100, 100, 50]
    assert menu["initial_option"]["text"]["text"] == "249"


def test_more_options_than_a_modal_takes_are_typed() -> None:
    block = opened(FormField("a", "select", field_values=tuple(map(str, range(4_000)))))[0]
    assert block["element"]["type"] == "plain_text_input"
    assert "one of 0, 1, 2" in block["hint"]["text"]


def test_of_too_many_fields_those_that_are_needed_are_asked() -> None:
    fields = [FormField(f"optional {number}", required=False) for number in range(60)]
    asked = opened(*fields, FormField("needed"))
    assert len(asked) == 45
    assert asked[-1]["label"]["text"] == "needed"


def test_a_long_title_is_said_whole() -> None:
    title = "Create a repository for the new service"
    view = modal(Form("f1", title, (FormField("a"),)), "t1", PLACE)
    assert title.startswith(view["title"]["text"].rstrip("…"))
    assert title in json.dumps(view["blocks"])


def test_every_argument_can_be_changed() -> None:
    view = modal(
        approval({"application": "web", "body": "two\nlines", "prune": True, "labels": {"a": 1}}), "t1", PLACE, "edit"
    )
    asked = {block["label"]["text"]: block["element"] for block in inputs(view["blocks"])}
    assert {name: element["initial_value"] for name, element in asked.items()} == {
        "application": "web",
        "body": "two\nlines",
        "labels": '{\n  "a": 1\n}',
        "prune": "true",
    }
    assert [name for name, element in asked.items() if element.get("multiline")] == ["body", "labels", "prune"]
    assert all(block["optional"] for block in inputs(view["blocks"]))


def test_a_modal_knows_whose_it_is() -> None:
    view = modal(REPOSITORY, "t1", PLACE, "reject")
    assert read_modal_id(view["callback_id"]) == "reject"
    assert read_reference(view["private_metadata"]) == FormReference("t1", "f1", PLACE)


# Written as JSON, a character may take twelve; all of them together fit.
_IDS = st.text(max_size=40)


@given(_IDS, _IDS, st.none() | st.builds(ThreadPlace, _IDS, _IDS, _IDS))
def test_references_come_back(task_id: str, form_id: str, place: ThreadPlace | None) -> None:
    reference = FormReference(task_id, form_id, place)
    assert read_reference(write_reference(reference, METADATA_LENGTH)) == (reference if task_id else None)


@pytest.mark.parametrize(
    ("reference", "read"),
    [
        (FormReference("t1", "f" * 3_000), FormReference("t1", "")),
        (FormReference("t" * 3_000, "f1"), None),
    ],
)
def test_ids_that_are_too_long_are_left_out(reference: FormReference, read: FormReference | None) -> None:
    value = write_reference(reference, VALUE_LENGTH)
    assert len(value) <= VALUE_LENGTH
    assert read_reference(value) == read


@given(json_values | st.text() | json_values.map(json.dumps))
def test_what_is_none_of_ours_is_nothing(garbage: Any) -> None:
    assert read_reference(garbage) is None
    assert read_button_id(garbage) is None
    assert read_modal_id(garbage) is None
    assert read_block_id(garbage) is None


def test_blocks_are_named_by_position() -> None:
    assert read_block_id(block_id(12, "00ff00ff")) == 12
