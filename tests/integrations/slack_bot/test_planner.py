"""The next operation in a thread, or the time to look again, from a state and the time."""

from __future__ import annotations

from typing import Any

import pytest

from ai_platform_engineering.integrations.slack_bot.thread_view.cards import Cards
from ai_platform_engineering.integrations.slack_bot.thread_view.content import Content, Outcome, SupervisorMessage
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card, File
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import Decision, Situation, decide
from ai_platform_engineering.integrations.slack_bot.thread_view.splitting import MIN_LIMIT, cut
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    OpenForm,
    PendingKind,
    PendingOperation,
    ShownMessage,
    State,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import StreamBuffer, WritePace
from tests.integrations.slack_bot.scenes import form

NOW = 1_000.0
CARD = Card("step:s0", "Look", "in_progress", "Calling Agent Argocd...")
CARDS = Cards("The plan", (CARD,))
NO_CARDS = Cards()
SHOWN: dict[str, Any] = {"plan": "The plan", "cards": (CARD,)}
LATER = NOW + 9.0
PACE = WritePace(1.0, 1.5)
EARLY = StreamBuffer(length=11, sent=5, since=NOW, flushed=NOW - 0.25)
"""Text that waits for NOW + 0.75 with PACE."""
LONG = "\n\n".join("x " * 500 for _ in range(12))
NAME = form("name")
WRONG = form("name", title="Not like that")
FILES = (File("a.py", "a.py", "1"), File("b.py", "b.py", "2"))


def known(
    text: str, *messages: ShownMessage, outcome: Outcome | None = None, cards: Cards = NO_CARDS, **more: Any
) -> State:
    """A run of which nothing is left to do but what the arguments bring."""
    content = Content(
        messages=(SupervisorMessage("m1", text, ended=outcome is not None),), cards=cards, outcome=outcome
    )
    usual = {"task_id": "task", "status": "is working", "stop_button_rejected": True, "last_number": 6, "pace": PACE}
    return State(**{**usual, "content": content, "messages": messages, **more})


def message(start: int, sent: int, **more: Any) -> ShownMessage:
    return ShownMessage(**{"start": start, "sent": sent, "ts": "1.0", "created_at": NOW - 10.0, **more})


def pending(kind: PendingKind, **details: Any) -> PendingOperation:
    return PendingOperation(7, kind, **details)


def assert_decided(state: State, expected: Decision) -> None:
    assert decide(state, NOW) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (known("Hello"), pending("start", upto=5)),
        (known("Hello", can_stream=False), pending("post", upto=5)),
        (known("Hello", retry_at={"start": LATER}), pending("post", upto=5)),
        (known("Hello", retry_at={"start": NOW}), pending("start", upto=5)),
        (known("Hello", retry_at={"start": LATER, "post": LATER}), LATER),
        (known("Hello", outcome="answered"), pending("post", upto=5, end=5, footer="rating")),
        (known("Hello", outcome="failed"), pending("post", upto=5, end=5, footer="retry")),
        (known("Hello", outcome="canceled"), pending("post", upto=5, end=5)),
        (known("", cards=CARDS), pending("start", **SHOWN)),
        (known(" \n"), None),
        (known("Hello", buffer=StreamBuffer(length=5, since=NOW, flushed=NOW - 0.25)), NOW + 0.75),
        (known("Hello", buffer=StreamBuffer(length=5, since=NOW - 5.0, flushed=NOW - 1.0)), pending("start", upto=5)),
        (known("Hello", cards=CARDS, buffer=EARLY), pending("start", upto=5, **SHOWN)),
        (known("Hello", outcome="canceled", buffer=EARLY), pending("post", upto=5, end=5)),
        (known("One\n\nTwo", message(0, 3, end=3)), pending("start", index=1, start=5, upto=8)),
        (known("One\n\nTwo", message(0, 3, end=3), buffer=EARLY), NOW + 0.75),
        (
            known("One\n\nTwo", message(0, 3, end=3, **SHOWN), cards=CARDS, buffer=EARLY),
            NOW + 0.75,
        ),
        (
            known("One\n\nTwo", message(0, 3, end=3), outcome="answered"),
            pending("post", index=1, start=5, upto=8, end=8, footer="rating"),
        ),
        (
            known("One\n\nTwo", message(0, 3, end=3, footer="rating"), outcome="answered"),
            pending("post", index=1, start=5, upto=8, end=8),
        ),
        (
            known("One\n\nTwo", message(0, 3, end=3, gone=True), cards=CARDS),
            pending("start", index=1, start=5, upto=8, **SHOWN),
        ),
        (known(LONG), pending("start", upto=cut(LONG, 0, 9_500), end=cut(LONG, 0, 9_500))),
        (
            known(LONG, outcome="answered"),
            pending("post", upto=cut(LONG, 0, 9_500), end=cut(LONG, 0, 9_500)),
        ),
    ],
)
def test_the_first_message_and_the_next(state: State, expected: Decision) -> None:
    assert_decided(state, expected)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (known("Hello", message(0, 5, streaming=True)), NOW + 230.0),
        (known("Hello there", message(0, 5, streaming=True)), pending("append", start=5, upto=11)),
        (known("Hello there", message(0, 5, streaming=True), retry_at={"append": LATER}), LATER),
        (known("Hello there", message(0, 5, streaming=True), buffer=EARLY), NOW + 0.75),
        (known("Hello there", message(0, 5, streaming=True, created_at=NOW - 239.5), buffer=EARLY), NOW + 0.5),
        (
            known("Hello there", message(0, 5, streaming=True, created_at=NOW - 240.0), buffer=EARLY),
            pending("stop", start=5, upto=11),
        ),
        (
            known("Hello there", message(0, 5, streaming=True), outcome="answered", buffer=EARLY),
            pending("stop", start=5, upto=11, end=11, footer="rating"),
        ),
        (
            known("Hello", message(0, 5, streaming=True), outcome="failed"),
            pending("stop", start=5, upto=5, end=5, footer="retry"),
        ),
        (
            known("Hello there", message(0, 5, streaming=True), outcome="answered", retry_at={"stop": LATER}),
            pending("append", start=5, upto=11),
        ),
        (known("Hello", message(0, 5, streaming=True), outcome="answered", retry_at={"stop": LATER}), LATER),
        (
            known(
                "Hi all", message(0, 5, streaming=True), outcome="answered", retry_at={"stop": LATER, "append": NOW + 1}
            ),
            LATER,
        ),
        # Cards
        (known("Hello", message(0, 5, streaming=True, **SHOWN), cards=CARDS), NOW + 230.0),
        (known("Hello", message(0, 5, streaming=True), cards=CARDS), pending("append", start=5, upto=5, **SHOWN)),
        (
            known("Hello", message(0, 5, streaming=True, plan="Old", cards=(CARD,)), cards=CARDS),
            pending("append", start=5, upto=5, **SHOWN),
        ),
        (
            known("Hello", message(0, 5, streaming=True), cards=CARDS, buffer=StreamBuffer(flushed=NOW - 0.25)),
            NOW + 0.75,
        ),
        (known("Hello there", message(0, 5, streaming=True), cards=CARDS, buffer=EARLY), NOW + 0.75),
        (
            known(
                "Hello there",
                message(0, 5, streaming=True),
                cards=CARDS,
                buffer=StreamBuffer(length=11, sent=5, since=NOW, flushed=NOW - 3.75),
            ),
            NOW + 0.25,
        ),
        (
            known("Hello", message(0, 5, streaming=True), outcome="asked", cards=CARDS, retry_at={"stop": LATER}),
            pending("append", start=5, upto=5, **SHOWN),
        ),
        # A message below the one with the cards
        (
            known("One\n\nTwo", message(0, 3, end=3, **SHOWN), message(5, 6, streaming=True), cards=CARDS),
            pending("append", index=1, start=6, upto=8),
        ),
        (
            known("One\n\nTwo", message(0, 3, end=3, **SHOWN), message(5, 8, streaming=True), cards=CARDS),
            NOW + 230.0,
        ),
        (
            known(
                "One\n\nTwo",
                message(0, 3, end=3),
                message(5, 6, streaming=True, plan="Old"),
                cards=CARDS,
                buffer=EARLY,
                updated=NOW,
            ),
            NOW + 0.75,
        ),
        # What is too long
        (known(LONG, message(0, 5, streaming=True), buffer=EARLY), NOW + 0.75),
        (
            known(LONG, message(0, 5, streaming=True)),
            pending("stop", start=5, upto=cut(LONG, 0, 9_500), end=cut(LONG, 0, 9_500)),
        ),
        (
            known(LONG, message(0, 9_400, streaming=True)),
            pending(
                "stop", start=9_400, upto=cut(LONG, 0, 9_500, delivered=9_400), end=cut(LONG, 0, 9_500, delivered=9_400)
            ),
        ),
        (known(LONG, message(0, 9_600, streaming=True)), pending("stop", start=9_600, upto=9_600, end=9_600)),
        (
            known(LONG, message(0, 5, streaming=True), outcome="answered"),
            pending("stop", start=5, upto=cut(LONG, 0, 9_500), end=cut(LONG, 0, 9_500)),
        ),
        (
            known(LONG, message(0, 5, streaming=True), retry_at={"stop": LATER}),
            pending("append", start=5, upto=cut(LONG, 0, 9_500), end=cut(LONG, 0, 9_500)),
        ),
    ],
)
def test_a_message_that_streams(state: State, expected: Decision) -> None:
    assert_decided(state, expected)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (known("Hello", message(0, 5)), None),
        (known("Hello there", message(0, 5)), pending("update", upto=11)),
        (known("Hello there", message(0, 5), updated=NOW - 1.0), NOW + 0.5),
        (known("Hello there", message(0, 5), buffer=StreamBuffer(11, since=NOW, flushed=NOW - 5.0)), NOW + 0.4),
        (known("Hello", message(0, 5), cards=CARDS), pending("update", upto=5, **SHOWN)),
        (known("Hello", message(0, 5, **SHOWN), cards=CARDS), None),
        (
            known("Hello", message(0, 5), outcome="answered", updated=NOW),
            pending("update", upto=5, end=5, footer="rating"),
        ),
        (known("Hello", message(0, 5, footer="rating"), outcome="answered"), None),
        (known("Hello", message(0, 5), outcome="canceled"), None),
        (
            known("One\n\nTwo", message(0, 3, end=3, **SHOWN), message(5, 6), cards=CARDS),
            pending("update", index=1, start=5, upto=8),
        ),
        (
            known(LONG, message(0, 5), updated=NOW),
            pending("update", upto=cut(LONG, 0, 9_500), end=cut(LONG, 0, 9_500)),
        ),
        (
            known(LONG, message(0, 5), outcome="answered"),
            pending("update", upto=cut(LONG, 0, 9_500), end=cut(LONG, 0, 9_500)),
        ),
        # The stream ended in the middle of a paragraph.
        (
            known("Hello there.\n\nNext\n\n", message(0, 5, rotated=True), updated=NOW),
            pending("update", upto=12, end=12),
        ),
        (
            known("Hello there.\n\nNext", message(0, 5, rotated=True), outcome="answered"),
            pending("update", upto=18, end=18, footer="rating"),
        ),
        (known("Hello there", message(0, 5, rotated=True), updated=NOW - 1.0), NOW + 0.5),
        (
            known("Hello there.\n\nNext", message(0, 12, rotated=True)),
            pending("start", index=1, start=14, upto=18),
        ),
        (
            known("Hi\n```\na\n\nb\n```\nNext", message(0, 7, rotated=True)),
            pending("update", upto=20),
        ),
        (
            known("```\na\n```\nHi\n```\na\n\nb\n```\nNext", message(10, 17, rotated=True)),
            pending("update", start=10, upto=30),
        ),
    ],
)
def test_a_message_that_is_updated(state: State, expected: Decision) -> None:
    assert_decided(state, expected)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (known("Hello", message(0, 3, streaming=True, unsure=True)), pending("stop", start=3, upto=3)),
        (
            known(
                "One\n\nTwo",
                message(0, 3, end=3, unsure=True, gone=True),
                message(5, 6, streaming=True, unsure=True, end=8),
            ),
            pending("stop", index=1, start=6, upto=6),
        ),
        (known("Hello", message(0, 3, unsure=True), cards=CARDS), pending("update", upto=5, **SHOWN)),
        (
            known("Hello", message(0, 3, unsure=True), outcome="answered"),
            pending("update", upto=5, end=5, footer="rating"),
        ),
        (known("Hello", message(0, 3, unsure=True), retry_at={"update": LATER}), LATER),
        (
            known(LONG, message(0, 3, unsure=True)),
            pending("update", upto=cut(LONG, 0, 9_500), end=cut(LONG, 0, 9_500)),
        ),
        (
            known("One\n\nTwo", message(0, 2, end=3, unsure=True), message(5, 8), outcome="answered"),
            pending("update", upto=3, end=3),
        ),
        (
            known("One\n\nTwo", message(0, 3, end=3), message(5, 6, unsure=True), cards=CARDS),
            pending("update", index=1, start=5, upto=8),
        ),
        (known("One\n\nTwo", message(0, 2, unsure=True), message(5, 8)), pending("update", upto=2, end=2)),
        (
            known("Hello there.\n\nNext", message(0, 12, rotated=True, unsure=True)),
            pending("update", upto=18),
        ),
    ],
)
def test_a_message_of_which_it_is_not_known_what_it_shows_is_written_again(state: State, expected: Decision) -> None:
    assert_decided(state, expected)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            known("One", message(0, 2, end=3, streaming=True, **SHOWN)),
            pending("stop", start=2, upto=2, end=3, **SHOWN),
        ),
        (
            known("Hello there.\n\nNext", message(0, 3, end=3), message(3, 12, rotated=True, streaming=True)),
            pending("stop", index=1, start=12, upto=12, end=12),
        ),
        (known("One", message(0, 3, end=3), cards=CARDS), pending("update", upto=3, end=3, **SHOWN)),
        (known("One", message(0, 3, end=3), cards=CARDS, updated=NOW - 1.0), NOW + 2.0),
        (known("One", message(0, 3, end=3), cards=CARDS, updated=NOW - 1.0, pace=WritePace(1.0, 5.0)), NOW + 4.0),
        (
            known("One", message(0, 3, end=3), cards=CARDS, updated=NOW, outcome="canceled"),
            pending("update", upto=3, end=3, **SHOWN),
        ),
        (known("One", message(0, 3, end=3, **SHOWN), cards=CARDS), None),
        (known("One", message(0, 3, end=3, gone=True), cards=CARDS), None),
    ],
)
def test_a_message_that_takes_no_more_text(state: State, expected: Decision) -> None:
    assert_decided(state, expected)


def delivered(**more: Any) -> State:
    """A run whose text has arrived."""
    return known("Hi", message(0, 2, end=2), **more)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (known("", status=""), pending("status")),
        (known("", status="", retry_at={"status": LATER}), LATER),
        (known("", status="", outcome="canceled"), None),
        (delivered(outcome="asked", forms=(OpenForm(NAME),)), pending("form", form=NAME)),
        (
            delivered(outcome="asked", forms=(OpenForm(NAME, "2.0", NAME), OpenForm(WRONG))),
            pending("form", index=1, form=WRONG),
        ),
        (known("Hi", outcome="asked", forms=(OpenForm(NAME),), retry_at={"post": LATER}), LATER),
        (
            delivered(forms=(OpenForm(NAME, "2.0", NAME, note="Done."),)),
            pending("form_update", form=NAME, note="Done."),
        ),
        (delivered(forms=(OpenForm(NAME, "2.0", NAME, note="Done.", note_shown=True),)), None),
        (delivered(forms=(OpenForm(NAME, "2.0", NAME, note="Done.", as_text=True),)), None),
        (delivered(forms=(OpenForm(NAME, note="Done."),)), None),
        (
            delivered(forms=(OpenForm(NAME, note="Done."), OpenForm(NAME, "2.0", NAME, WRONG))),
            pending("form_update", index=1, form=WRONG),
        ),
        (delivered(forms=(OpenForm(NAME, "2.0", NAME, WRONG, as_text=True),)), None),
        (delivered(stop_button_rejected=False, begun=NOW - 4.0), pending("button")),
        (delivered(stop_button_rejected=False, begun=NOW - 3.5), NOW + 0.5),
        (delivered(stop_button_rejected=False, task_id=""), None),
        (delivered(stop_button_rejected=False, stop_button_ts="9.0"), None),
        (delivered(outcome="canceled", stop_button_ts="9.0"), pending("no_button")),
        (delivered(outcome="canceled", stop_button_rejected=False), None),
        # The earliest time counts.
        (known("Hello", message(0, 5, streaming=True), stop_button_rejected=False, begun=NOW - 3.5), NOW + 0.5),
        (delivered(closed=True, status=""), None),
        (delivered(forms=(OpenForm(NAME),), pending=pending("status")), None),
    ],
)
def test_signs_of_life_forms_and_the_button(state: State, expected: Decision) -> None:
    assert_decided(state, expected)


@pytest.mark.parametrize(
    ("outcome", "sent", "expected"),
    [
        ("answered", 0, pending("file")),
        ("answered", 1, pending("file", index=1)),
        ("answered", 2, None),
        (None, 0, None),
    ],
)
def test_files_come_when_all_text_is_shown(outcome: Outcome | None, sent: int, expected: Decision) -> None:
    content = Content(previous_text="Hi", previous_files=FILES, outcome=outcome)
    there = known("", message(0, 2, end=2, footer="rating"), content=content, files_sent=sent)
    assert_decided(there, expected)
    assert_decided(
        known(
            "",
            message(0, 1, streaming=True),
            content=content,
            files_sent=sent,
            retry_at={"stop": LATER, "append": LATER},
        ),
        LATER,
    )


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        ("x" * 20_000, {}, 9_500),
        ("ü" * 20_000, {}, 4_750),
        ("x" + "ü" * 20_000, {}, 4_750),
        ("ü" * 4_750, {}, 9_500),
        ("x" * 20_000, {"limit": 5_000}, 5_000),
        ("x" * 20_000, {"limit": 1}, MIN_LIMIT),
        ("x" * 20_000, {"cards": Cards("", (Card("a", "ü" * 100, "pending", "ü" * 150),))}, 8_700),
        ("x" * 20_000, {"cards": Cards("", (Card("a", "x", "pending", "x" * 3_000),))}, 4_000),
    ],
)
def test_a_message_has_room_for_so_many_bytes(text: str, more: dict[str, Any], expected: int) -> None:
    here = Situation(known(text, **more), NOW)
    assert here.limit(0, shows_cards=True) == expected
    if "cards" in more:
        assert here.limit(0, shows_cards=False) == 9_500


def test_the_room_is_counted_from_where_the_message_begins() -> None:
    here = Situation(known("ü" * 50 + "x" * 20_000), NOW)
    assert [here.limit(start, shows_cards=True) for start in (0, 50)] == [9_450, 9_500]


def test_the_cards_take_room_from_the_text_beside_them() -> None:
    cards = Cards("", (Card("a", "x" * 5_000, "pending", ""),))
    end = cut(LONG, 0, 4_500)
    assert_decided(known(LONG, cards=cards), pending("start", upto=end, end=end, cards=cards.all))
    can_stream = message(0, 5, streaming=True, cards=cards.all)
    assert_decided(known(LONG, can_stream, cards=cards), pending("stop", start=5, upto=end, end=end, cards=cards.all))
    below = message(5, 8, streaming=True)
    start, end = 5, cut(f"One\n\n{LONG}", 5, 9_500)
    state = known(f"One\n\n{LONG}", message(0, 3, end=3, cards=cards.all), below, cards=cards)
    assert_decided(state, pending("stop", index=1, start=8, upto=end, end=end))
    assert_decided(
        known(f"One\n\n{LONG}", state.messages[0], cards=cards),
        pending("start", index=1, start=start, upto=end, end=end),
    )
