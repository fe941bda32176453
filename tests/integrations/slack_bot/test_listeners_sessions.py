"""Slack's own button to stop the bot."""

from __future__ import annotations

from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import StoredRun
from tests.integrations.slack_bot.listening_bench import bench

STOPPED = {
    "type": "agent_session_stopped",
    "channel": "C1",
    "thread_ts": "1.0",
    "user": "UBEN",
    "streaming_message_ts": ["2.0"],
}


def run_in(thread_ts: str, run_id: str) -> StoredRun:
    return StoredRun(
        run_id, Incoming(ThreadPlace("T1", "C1", thread_ts), thread_ts, "deploy", SlackUser("T1", "UANNA")), "c"
    )


async def test_whoever_presses_it_stops_what_goes_on_in_that_thread() -> None:
    async with bench() as listeners:
        listeners.bot.running = [run_in("1.0", "a"), run_in("7.0", "elsewhere"), run_in("1.0", "b")]
        for _ in range(2):
            assert (await listeners.event(STOPPED, event_id="Ev1")).status_code == 200
        await listeners.quiet()
        ben = SlackUser("T1", "UBEN")
        assert listeners.bot.asked == [("cancel_run", "a", ben), ("cancel_run", "b", ben)]
        assert listeners.slack.calls == []


async def test_who_presses_it_in_vain_is_told_so() -> None:
    async with bench() as listeners:
        listeners.bot.running, listeners.bot.stops = [run_in("1.0", "a")], "not_stopped"
        await listeners.event(STOPPED)
        await listeners.quiet()
        (notice,) = listeners.slack.of("chat.postEphemeral")
        assert (notice["user"], notice["thread_ts"]) == ("UBEN", "1.0")
        assert "could not stop it" in notice["text"]


async def test_what_was_over_when_it_was_pressed_is_nothing_to_be_told() -> None:
    async with bench() as listeners:
        listeners.bot.running, listeners.bot.stops = [run_in("1.0", "a")], "already_over"
        await listeners.event(STOPPED)
        await listeners.quiet()
        assert listeners.slack.calls == []
