"""The side panel, and the messages tab of the app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ai_platform_engineering.integrations.slack_bot.listeners.assistant import GREETING
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.utils.errors import ReadableError
from tests.integrations.slack_bot.listening_bench import Bench, bench, direct

STARTED: dict[str, Any] = {
    "type": "assistant_thread_started",
    "assistant_thread": {"user_id": "UANNA", "channel_id": "D1", "thread_ts": "5.0", "context": {"channel_id": "C9"}},
}
PROMPTS = [{"title": words, "message": words} for words in ("Who is on call?", "What can you do?", "Three", "Four")]


@pytest.fixture
async def listeners() -> AsyncIterator[Bench]:
    async with bench() as made:
        yield made


async def test_a_thread_begins_with_a_greeting_and_questions(listeners: Bench) -> None:
    for _ in range(2):
        assert (await listeners.event(STARTED, event_id="Ev1")).status_code == 200
    await listeners.quiet()
    (greeting,) = listeners.slack.of("chat.postMessage")
    assert (greeting["channel"], greeting["thread_ts"], greeting["text"]) == ("D1", "5.0", GREETING)
    (suggested,) = listeners.slack.of("assistant.threads.setSuggestedPrompts")
    assert (suggested["channel_id"], suggested["thread_ts"], suggested["prompts"]) == ("D1", "5.0", PROMPTS)


async def test_people_are_greeted_while_the_supervisor_is_away(listeners: Bench) -> None:
    listeners.bot.error = ReadableError("It is away.")
    await listeners.event(STARTED)
    await listeners.quiet()
    assert [method for method, _ in listeners.slack.calls] == ["chat.postMessage"]


async def test_a_workspace_without_such_questions_is_greeted_all_the_same(
    listeners: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    listeners.slack.refusals["assistant.threads.setSuggestedPrompts"] = "missing_scope"
    await listeners.event(STARTED)
    await listeners.quiet()
    assert listeners.slack.of("chat.postEphemeral") == []
    assert "missing_scope" in caplog.text


async def test_what_is_written_there_is_a_question_in_that_thread(listeners: Bench) -> None:
    await listeners.event(direct(ts="6.0", thread_ts="5.0"))
    assert [taken.place for taken in listeners.bot.taken] == [ThreadPlace("T1", "D1", "5.0")]


async def test_who_opens_the_messages_is_offered_questions(listeners: Bench) -> None:
    opened = {"type": "app_home_opened", "user": "UANNA", "channel": "D1", "tab": "messages"}
    await listeners.event(opened)
    await listeners.event({**opened, "tab": "home"})
    await listeners.quiet()
    ((method, suggested),) = listeners.slack.calls
    assert method == "assistant.threads.setSuggestedPrompts"
    assert "thread_ts" not in suggested
    assert suggested["prompts"] == PROMPTS
