"""How soon people in Slack see that something happens, when many ask at once, and what an event costs the bot.

Slack is the strict stand-in of the tests, on this machine: with its limits, without the way to it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.effort import Effort
from benchmarks.processes import Process, started
from benchmarks.rows import Row
from tests.integrations.slack_bot.standin import standing_in

THREADS: Final = 30
_EVERY: Final = 0.025
"""Seconds between two events, as the supervisor gathers them."""
_FEW: Final = 4


@dataclass(frozen=True, slots=True)
class _Round:
    first_texts: list[float]
    """Seconds from the first event of a thread to the first text in Slack."""
    cpu_seconds: float
    events: int


def slack(effort: Effort) -> list[Row]:
    rounds, words = min(3, effort.starts), effort.words // 2
    many = [_round(words, words) for _ in range(rounds)]
    few = [_round(_FEW, words) for _ in range(rounds)]
    best = min(many, key=lambda one: max(one.first_texts))
    costly, cheap = (min(some, key=lambda one: one.cpu_seconds) for some in (many, few))
    of_one = (costly.cpu_seconds - cheap.cpu_seconds) / (costly.events - cheap.events)
    return [
        Row("slack.first", f"First text in Slack: {THREADS} threads, the last", max(best.first_texts) * 1000, "ms"),
        Row("slack.first.middle", "… the middle one", median(best.first_texts) * 1000, "ms"),
        Row("slack.event", f"CPU per event: Slack bot, {THREADS} threads", of_one * 1000, "ms"),
    ]


def _round(pieces: int, words: int) -> _Round:
    with started("benchmarks.slack_bot") as process:
        return asyncio.run(_measured(process, pieces, words))


async def _measured(process: Process, pieces: int, words: int) -> _Round:
    async with standing_in() as slack:
        slack.state.tell = lambda event: None
        places = []
        for number in range(THREADS):
            person = slack.person(f"person{number}")
            channel = slack.channel(f"channel{number}", person)
            question = await person.says(channel, "how is it?")
            places.append((channel.id, question.ts, person.id))
        order = {
            "url": slack.api_url,
            "token": slack.app.bot_token,
            "team": slack.directory.team_id,
            "questions": places,
            "pieces": pieces,
            "words": words,
            "every": _EVERY,
        }
        before = process.cpu_seconds()
        told = await asyncio.to_thread(process.order, order)
        used = process.cpu_seconds() - before
        if slack.violations:
            raise AssertionError(f"the bot broke Slack's limits: {slack.violations[0]}")
        seen = {ts: slack.history.first_text(channel, ts) for channel, ts, _ in places}
    first_texts = [(seen[ts] or float("inf")) - told["first_event"][ts] for ts in seen]
    return _Round(first_texts, used, told["events"])
