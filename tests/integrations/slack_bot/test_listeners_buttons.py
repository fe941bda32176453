"""Stop, try again and thumbs, pressed as Slack tells it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ai_platform_engineering.integrations.slack_bot.actions import RATE, RETRY, STOP, value_of
from ai_platform_engineering.integrations.slack_bot.listeners.buttons import THANKS, UNREADABLE
from ai_platform_engineering.integrations.slack_bot.listeners.rating_reason import REASONS
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating, Retry, Stop
from tests.integrations.slack_bot.listening_bench import ANNA, Bench, bench

RATING = Rating("task-1", "trace-1", "message-1")


@pytest.fixture
async def listeners() -> AsyncIterator[Bench]:
    async with bench() as made:
        yield made


async def test_stop_cancels_and_the_outcome_is_told(listeners: Bench) -> None:
    listeners.bot.stops = "already_over"
    answer = await listeners.press(STOP, value_of(Stop("task-1")))
    assert (answer.status_code, answer.text) == (200, "")
    await listeners.quiet()
    assert listeners.bot.asked == [("cancel", "task-1", ANNA)]
    (notice,) = listeners.slack.of("chat.postEphemeral")
    assert (notice["channel"], notice["thread_ts"], notice["user"]) == ("C1", "1.0", "UANNA")
    assert notice["text"] == "This is over already."


async def test_what_the_thread_shows_is_not_told_again(listeners: Bench) -> None:
    await listeners.press(RETRY, value_of(Retry("task-2")))
    await listeners.quiet()
    assert listeners.bot.asked == [("retry", "task-2", ANNA, "")]
    assert listeners.slack.calls == []


async def test_the_answer_to_slack_waits_for_nothing(listeners: Bench) -> None:
    listeners.bot.seconds = 30
    assert (await listeners.press(RETRY, value_of(Retry("task-1")))).elapsed.total_seconds() < 15
    await listeners.context.background.finish(0)


async def test_thumbs_up_is_kept(listeners: Bench) -> None:
    await listeners.press(RATE, value_of(RATING, good=True), type="feedback_buttons")
    await listeners.quiet()
    assert listeners.bot.asked == [("rate", RATING, ANNA, True, "")]
    assert [notice["text"] for notice in listeners.slack.of("chat.postEphemeral")] == [THANKS]


async def thumbs_down(listeners: Bench) -> dict[str, Any]:
    """The form that it opens."""
    await listeners.press(RATE, value_of(RATING, good=False), type="feedback_buttons")
    await listeners.quiet()
    (opened,) = listeners.slack.of("views.open")
    assert opened["trigger_id"].startswith("trigger.")
    view: dict[str, Any] = json.loads(opened["view"]) if isinstance(opened["view"], str) else opened["view"]
    return view


async def submit(
    listeners: Bench, view: dict[str, Any], kind: str | None, words: str | None, *, again: bool
) -> httpx.Response:
    state = {
        "kind": {"type": "static_select", "selected_option": {"value": kind} if kind else None},
        "words": {"type": "plain_text_input", "value": words},
        "again": {"type": "checkboxes", "selected_options": [{"value": "again"}] if again else []},
    }
    values = {name: {name: value} for name, value in state.items()}
    return await listeners.interaction(
        {"type": "view_submission", "view": {**view, "id": "V1", "state": {"values": values}}}
    )


async def test_thumbs_down_counts_at_once_and_asks_why(listeners: Bench) -> None:
    view = await thumbs_down(listeners)
    assert listeners.bot.asked == [("rate", RATING, ANNA, False, "")]
    assert [option["value"] for option in view["blocks"][0]["element"]["options"]] == list(REASONS)


async def test_a_reason_is_kept(listeners: Bench) -> None:
    view = await thumbs_down(listeners)
    answer = await submit(listeners, view, REASONS[0], " The port is 8443. ", again=False)
    assert (answer.status_code, answer.text) == (200, "")
    await listeners.quiet()
    assert listeners.bot.asked[1:] == [("rate", RATING, ANNA, False, f"{REASONS[0]}: The port is 8443.")]
    (notice,) = listeners.slack.of("chat.postEphemeral")
    assert (notice["text"], notice["thread_ts"]) == (THANKS, "1.0")


async def test_it_is_answered_again_with_the_reason(listeners: Bench) -> None:
    view = await thumbs_down(listeners)
    await submit(listeners, view, None, "The port is 8443.", again=True)
    await listeners.quiet()
    assert listeners.bot.asked[1:] == [
        ("rate", RATING, ANNA, False, "The port is 8443."),
        ("retry", "task-1", ANNA, "The port is 8443."),
    ]
    assert listeners.slack.of("chat.postEphemeral") == []


async def test_who_only_wants_another_answer_gets_one(listeners: Bench) -> None:
    view = await thumbs_down(listeners)
    await submit(listeners, view, None, None, again=True)
    await listeners.quiet()
    assert listeners.bot.asked[1:] == [("retry", "task-1", ANNA, "")]


async def test_a_form_that_came_too_late_is_told(listeners: Bench) -> None:
    listeners.slack.refusals["views.open"] = "expired_trigger_id"
    await listeners.press(RATE, value_of(RATING, good=False))
    await listeners.quiet()
    (notice,) = listeners.slack.of("chat.postEphemeral")
    assert "Press the button again" in notice["text"]


@pytest.mark.parametrize("value", ["", "{}", "[", '{"stop": 1}'])
async def test_a_button_that_cannot_be_read_says_so(listeners: Bench, value: str) -> None:
    await listeners.press(STOP, value)
    await listeners.quiet()
    assert listeners.bot.asked == []
    assert [notice["text"] for notice in listeners.slack.of("chat.postEphemeral")] == [UNREADABLE]


async def test_other_buttons_are_acknowledged(listeners: Bench) -> None:
    assert (await listeners.press("a-link", "x")).status_code == 200
    await listeners.quiet()
    assert listeners.slack.calls == []


async def test_a_bot_that_fails_says_what_to_do(listeners: Bench, caplog: pytest.LogCaptureFixture) -> None:
    listeners.bot.error = RuntimeError("token xoxb-secret of http://10.0.0.7")
    await listeners.press(RETRY, value_of(Retry("task-1")))
    await listeners.quiet()
    (notice,) = listeners.slack.of("chat.postEphemeral")
    assert "Try again" in notice["text"]
    assert "secret" not in notice["text"] + caplog.text
    number = notice["text"].rpartition(" ")[2].rstrip(".")
    assert number in caplog.text
    assert "RuntimeError" in caplog.text
