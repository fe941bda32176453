"""Chunks and blocks, held against Block Kit's reference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.integrations.slack_bot.actions import RATE, RETRY, STOP, ButtonPress, read_value, value_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    Body,
    Card,
    Footer,
    Piece,
    Rating,
    Retry,
    Stop,
)
from ai_platform_engineering.integrations.slack_bot.web_api.blocks import (
    CARD_LIMIT,
    FIELD_LIMIT,
    TEXT_LIMIT,
    chunks_of,
    fits,
    footer_blocks,
    message_of,
    plain_text_of,
)
from tests.integrations.slack_bot.block_kit import message_problems

PLAN = (
    Card("s1", "[Jira] Show tickets", "complete", "Calling Agent Jira... · search"),
    Card("s2", "[Argo CD] Sync", "error"),
    Card("s3", "Write it up", "in_progress"),
    Card("s4", "Say thanks", "pending"),
)

anything = st.text(max_size=20) | st.builds(
    lambda part, times: part * times, st.text(st.characters(), min_size=1, max_size=3), st.integers(1, 7000)
)
cards = st.builds(
    Card,
    id=st.text(max_size=3) | anything,
    title=anything,
    status=st.sampled_from(["pending", "in_progress", "complete", "error"]),
    details=anything,
)
footers: st.SearchStrategy[Footer | None] = (
    st.none()
    | st.builds(Rating, task_id=anything, trace_id=anything, message_id=anything)
    | st.builds(Retry, task_id=anything)
    | st.builds(Stop, task_id=anything)
)
many_cards = st.lists(cards, max_size=4).flatmap(
    lambda few: st.integers(0, 30).map(lambda times: tuple(few) * times or tuple(few))
)
bodies = st.builds(Body, text=anything, plan=anything, cards=many_cards, footer=footers)
pieces = st.builds(Piece, text=anything, plan=st.none() | anything, cards=many_cards)


def test_chunks_are_the_text_then_the_plan_then_cards() -> None:
    piece = Piece("The answer.", "Two steps", PLAN[:2])
    assert chunks_of(piece) == [
        {"type": "markdown_text", "text": "The answer."},
        {"type": "plan_update", "title": "Two steps"},
        {
            "type": "task_update",
            "id": "s1",
            "title": "[Jira] Show tickets",
            "status": "complete",
            "details": "Calling Agent Jira... · search",
        },
        {"type": "task_update", "id": "s2", "title": "[Argo CD] Sync", "status": "error"},
    ]


def test_nothing_to_add_is_no_chunk() -> None:
    assert chunks_of(Piece(plan="")) == []


def test_white_space_is_text() -> None:
    assert chunks_of(Piece("\n\n")) == [{"type": "markdown_text", "text": "\n\n"}]


@given(pieces)
def test_chunks_keep_slacks_limits(piece: Piece) -> None:
    for chunk in chunks_of(piece):
        limit = TEXT_LIMIT if chunk["type"] == "markdown_text" else FIELD_LIMIT
        assert all(0 < len(value) <= limit for value in chunk.values())
        assert all(value.encode() for value in chunk.values()), "only what can be sent"


def test_a_message_shows_the_plan_then_the_text_then_the_footer() -> None:
    text, blocks = message_of(Body("**Done.**", "Four steps", PLAN, Retry("t1")))
    assert text == "**Done.**"
    assert [block["type"] for block in blocks] == ["plan", "markdown", "actions"]
    plan, markdown, _ = blocks
    assert plan["title"] == "Four steps"
    assert [(task["task_id"], task["title"], task["status"]) for task in plan["tasks"]] == [
        (card.id, card.title, card.status) for card in PLAN
    ]
    assert plan["tasks"][0]["details"] == {
        "type": "rich_text",
        "elements": [
            {
                "type": "rich_text_section",
                "elements": [{"type": "text", "text": "Calling Agent Jira... · search"}],
            }
        ],
    }
    assert "details" not in plan["tasks"][1]
    assert markdown["text"] == "**Done.**"


@pytest.mark.parametrize("body", [Body(), Body(" \n"), Body(footer=Stop("t1"))])
def test_there_is_always_a_text_for_notifications(body: Body) -> None:
    text, blocks = message_of(body)
    assert text.strip()
    assert all(block["type"] == "actions" for block in blocks)


def test_mentions_in_a_notification_are_inactive() -> None:
    text, _ = message_of(Body("<!channel> & <@U1>"))
    assert text == "&lt;!channel&gt; &amp; &lt;@U1&gt;"


def test_the_longest_text_leaves_room_for_buttons() -> None:
    body = Body("x" * 50_000, footer=Retry("t1"))
    assert not fits(body)
    assert message_problems(message_of(body)[1]) == []


def test_a_long_answer_keeps_its_text_and_names_every_agent() -> None:
    agents = tuple(Card(f"s{n}", f"[Agent {n}] Look after it", "complete", "x" * 250) for n in range(20))
    answer = "word " * 2_200
    _, blocks = message_of(Body(answer, "Twenty", agents))
    shown = str(blocks)
    assert answer.strip() in shown
    assert all(card.title in shown for card in agents)
    assert message_problems(blocks) == []


def test_details_go_before_cards_do() -> None:
    agents = tuple(Card(f"s{n}", f"[Agent {n}] Look after it", "complete", "x" * 250) for n in range(20))
    _, blocks = message_of(Body("word " * 1_400, "Twenty", agents))
    assert [block["type"] for block in blocks] == ["plan", "markdown"]
    assert all("details" not in task for task in blocks[0]["tasks"])


def test_a_plan_of_too_many_says_how_many_are_left_out() -> None:
    _, blocks = message_of(Body(cards=tuple(Card(f"s{n}", f"Step {n}", "pending") for n in range(CARD_LIMIT + 10))))
    assert blocks[0]["tasks"][-1]["title"] == "… and 11 more"


@given(bodies, st.sets(st.sampled_from(["plan", "markdown", "actions", "context_actions"])))
def test_messages_keep_slacks_limits(body: Body, without: set[str]) -> None:
    text, blocks = message_of(body, without)
    assert 0 < len(text) <= 4_000
    assert not without & {block["type"] for block in blocks}
    if blocks:
        assert message_problems(blocks, text) == []


@given(bodies)
def test_plain_texts_keep_slacks_limits(body: Body) -> None:
    plain = plain_text_of(body)
    assert len(plain) <= TEXT_LIMIT
    if fits(body) and body.text.isascii():
        assert body.text.strip() in plain


def test_without_blocks_the_plan_is_lines() -> None:
    assert plain_text_of(Body("All done.", "Four steps", PLAN)) == (
        "**Four steps**\n"
        "✅ [Jira] Show tickets: Calling Agent Jira... · search\n"
        "❌ [Argo CD] Sync\n"
        "⏳ Write it up\n"
        "◻️ Say thanks\n"
        "\n"
        "All done."
    )


def test_what_a_workspace_does_not_know_is_left_out() -> None:
    body = Body("All done.", "Four steps", PLAN, Rating("t1", "trace", "m1"))
    _, blocks = message_of(body, {"plan"})
    assert blocks[0] == {"type": "markdown", "text": plain_text_of(body)}
    assert blocks[1:] == footer_blocks(body.footer)
    assert message_of(body, {"plan", "context_actions"})[1] == blocks[:1]
    assert message_of(body, {"markdown"})[1] == []


def pressed(block: dict[str, Any]) -> list[tuple[str, ButtonPress | None]]:
    (element,) = block["elements"]
    buttons = [element[key] for key in ("positive_button", "negative_button") if key in element] or [element]
    return [(element["action_id"], read_value(button["value"])) for button in buttons]


@pytest.mark.parametrize(
    ("footer", "expected"),
    [
        (
            Rating("t1", "trace", "m1"),
            [
                (RATE, ButtonPress(Rating("t1", "trace", "m1"), True)),
                (RATE, ButtonPress(Rating("t1", "trace", "m1"), False)),
            ],
        ),
        (Retry("t1"), [(RETRY, ButtonPress(Retry("t1")))]),
        (Stop("t1"), [(STOP, ButtonPress(Stop("t1")))]),
    ],
)
def test_buttons_come_back_as_what_they_are(footer: Footer, expected: list[tuple[str, ButtonPress]]) -> None:
    (block,) = footer_blocks(footer)
    assert pressed(block) == expected


def test_only_stop_looks_dangerous() -> None:
    assert footer_blocks(Stop("t1"))[0]["elements"][0]["style"] == "danger"
    assert "style" not in footer_blocks(Retry("t1"))[0]["elements"][0]


@pytest.mark.parametrize(
    "value",
    [None, 7, "", "no json", "[]", "{}", '{"stop": 7}', '{"rate": "t1"}', "[" * 100_000, value_of(Stop("t1"))[:-1]],
)
def test_garbage_is_no_button(value: object) -> None:
    assert read_value(value) is None
