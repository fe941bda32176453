"""Slack's own button to stop the bot."""

from __future__ import annotations

from ai_platform_engineering.integrations.slack_bot.places import Incoming, Person, Place
from ai_platform_engineering.integrations.slack_bot.store import KeptRun
from ai_platform_engineering.integrations.slack_bot.words import NOT_STOPPED
from tests.slack.listening_bench import bench

STOPPED = {
    "type": "agent_session_stopped",
    "channel": "C1",
    "thread_ts": "1.0",
    "user": "UBEN",
    "streaming_message_ts": ["2.0"],
}


def run_in(thread_ts: str, run_id: str) -> KeptRun:
    return KeptRun(run_id, Incoming(Place("T1", "C1", thread_ts), thread_ts, "deploy", Person("T1", "UANNA")), "c")


async def test_whoever_presses_it_stops_what_goes_on_in_that_thread() -> None:
    async with bench() as listeners:
        listeners.bot.running = [run_in("1.0", "a"), run_in("7.0", "elsewhere"), run_in("1.0", "b")]
        for _ in range(2):
            assert (await listeners.event(STOPPED, event_id="Ev1")).status_code == 200
        await listeners.quiet()
        ben = Person("T1", "UBEN")
        assert listeners.bot.asked == [("cancel_run", "a", ben), ("cancel_run", "b", ben)]
        assert listeners.slack.calls == []


async def test_who_presses_it_in_vain_is_told_so() -> None:
    async with bench() as listeners:
        listeners.bot.running, listeners.bot.says = [run_in("1.0", "a")], NOT_STOPPED
        await listeners.event(STOPPED)
        await listeners.quiet()
        (told,) = listeners.slack.of("chat.postEphemeral")
        assert (told["text"], told["user"], told["thread_ts"]) == (NOT_STOPPED, "UBEN", "1.0")
