"""The checker of Block Kit: it has to find what Slack refuses, or the other tests prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integrations.slack_bot.block_kit import message_problems, view_problems


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def option(text: str, value: str = "1") -> dict[str, Any]:
    return {"text": plain(text), "value": value}


def asked(element: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "input", "label": plain("Name"), "element": element, **more}


def opened(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "modal", "title": plain("A form"), "submit": plain("Send"), "blocks": list(blocks), **more}


def button(**more: Any) -> dict[str, Any]:
    return {"type": "actions", "elements": [{"type": "button", "text": plain("Go"), "action_id": "go", **more}]}


def select(*options: dict[str, Any], **more: Any) -> dict[str, Any]:
    return asked({"type": "static_select", "options": list(options), **more})


def number(**more: Any) -> dict[str, Any]:
    return asked({"type": "number_input", "is_decimal_allowed": False, **more})


CONFIRM = {"title": plain("Sure?"), "text": plain("It is kept."), "confirm": plain("Yes"), "deny": plain("No")}
TASK = {"type": "task_card", "task_id": "1", "title": "Search", "status": "complete"}
RIGHT: list[dict[str, Any]] = [
    {"type": "header", "text": plain("t" * 150)},
    {"type": "section", "text": {"type": "mrkdwn", "text": "t" * 3000}},
    {"type": "markdown", "text": "**bold**"},
    {"type": "divider"},
    {"type": "context", "elements": [{"type": "mrkdwn", "text": "quiet"}]},
    {"type": "plan", "title": "Two steps", "tasks": [TASK, {**TASK, "task_id": "2"}]},
    {
        "type": "rich_text",
        "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "code"}]}],
    },
    {
        "type": "context_actions",
        "elements": [
            {
                "type": "feedback_buttons",
                "positive_button": {"text": plain("Good"), "value": "1"},
                "negative_button": {"text": plain("Bad"), "value": "0"},
            }
        ],
    },
    button(style="primary", value="v" * 2000, confirm=CONFIRM),
    select(option("a"), option("b", "2"), initial_option=option("b", "2")),
    asked({"type": "plain_text_input", "multiline": True, "initial_value": "x" * 3000}),
]


@pytest.mark.parametrize("block", RIGHT, ids=lambda block: block["type"])
def test_what_the_reference_shows_is_right(block: dict[str, Any]) -> None:
    assert message_problems([block], "text") == []


def test_a_view_may_have_what_a_message_may_not() -> None:
    view = opened(number(min_value="-1", initial_value="2", max_value="10"))
    assert view_problems(view) == []
    assert "surface" in message_problems(view["blocks"])[0]


@pytest.mark.parametrize(
    ("block", "pointer"),
    [
        ({"type": "header", "text": plain("t" * 151)}, "/text/text"),
        ({"type": "header", "text": {"type": "mrkdwn", "text": "t"}}, "/text"),
        ({"type": "section", "text": plain("t" * 3001)}, "/text/text"),
        ({"type": "section", "text": plain(" ")}, "/text/text"),
        ({"type": "section"}, ""),
        ({"type": "sections", "text": plain("t")}, ""),
        ({"type": "divider", "text": plain("t")}, ""),
        ({"type": "context", "elements": []}, "/elements"),
        ({"type": "actions", "elements": button()["elements"] * 26}, "/elements"),
        ({"type": "actions", "elements": button()["elements"] * 2}, ""),
        (button(style="default"), "/elements/0/style"),
        (button(value="v" * 2001), "/elements/0/value"),
        (button(text=plain("t" * 76)), "/elements/0/text/text"),
        (button(confirm={**CONFIRM, "text": plain("t" * 301)}), "/elements/0/confirm/text/text"),
        ({**button(), "block_id": "b" * 256}, "/block_id"),
        (select(option("t" * 76)), "/element/options/0/text/text"),
        (select(option("a", "v" * 151)), "/element/options/0/value"),
        (select(option("a"), option("b")), "/element"),
        (select(option("a"), initial_option=option("b")), "/element/initial_option"),
        (select(*(option("a", str(number)) for number in range(101))), "/element/options"),
        (select(), "/element/options"),
        (asked({"type": "static_select"}), "/element"),
        (asked({"type": "plain_text_input", "initial_value": "x" * 3001}), "/element/initial_value"),
        (asked({"type": "plain_text_input", "initial_value": "xx", "max_length": 1}), "/element/initial_value"),
        (asked({"type": "plain_text_input", "min_length": 3, "max_length": 2}), "/element"),
        (asked({"type": "plain_text_input", "initial_value": "\ud800"}), "/element/initial_value"),
        (asked({"type": "button", "text": plain("t")}), "/element"),
        (asked({"type": "plain_text_input"}, hint=plain("h" * 2001)), "/hint/text"),
        ({"type": "plan", "title": "Same step twice", "tasks": [TASK, TASK]}, ""),
        ({**TASK, "status": "done"}, "/status"),
    ],
)
def test_what_slack_refuses_is_found_where_it_is(block: dict[str, Any], pointer: str) -> None:
    problems = message_problems([block])
    assert [problem.partition("json-pointer:")[2] for problem in problems] == [f"/blocks/0{pointer}]"]


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [{"type": "divider"}] * 51,
        [{"type": "divider", "block_id": "same"}] * 2,
        [{"type": "markdown", "text": "m" * 6001}] * 2,
        [{"type": "section", "text": plain("t" * 3000)}] * 5,
        {"type": "divider"},
    ],
)
def test_blocks_that_are_too_much_together(blocks: Any) -> None:
    assert len(message_problems(blocks)) == 1


@pytest.mark.parametrize(
    "view",
    [
        opened(number(), title=plain("t" * 25)),
        {key: part for key, part in opened(number()).items() if key != "submit"},
        opened(*([{"type": "divider"}] * 101)),
        opened(number(), private_metadata="m" * 3001),
        opened(number(), state={}),
        opened(number(min_value="3", max_value="2")),
        opened(number(initial_value="2.5")),
        opened(number(initial_value="two")),
        opened(number(initial_value="1e3")),
        opened(number(initial_value=2)),
        opened({"type": "markdown", "text": "m"}),
        opened(*(asked({"type": "plain_text_input", "initial_value": "é" * 3000}) for _ in range(20))),
        opened(*(asked({"type": "plain_text_input", "focus_on_load": True}) for _ in range(2))),
        {"type": "dialog"},
    ],
)
def test_views_that_slack_does_not_open(view: dict[str, Any]) -> None:
    assert len(view_problems(view)) == 1
