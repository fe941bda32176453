"""Thirty threads at once: no person reads the answer of another, and each gets an answer, once and in time, and
Slack is not asked more often than it allows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
import pytest_asyncio

from ai_platform_engineering.events import SUPERVISOR, Event, FinalResult, MessageEnded, TextDelta
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.integrations.slack_bot.words import STOPPABLE
from tests.integrations.slack_bot.scenes import plan, says, works
from tests.integrations.slack_bot.scripted import Stage, staged
from tests.integrations.slack_bot.standin import Slack, VirtualClock, standing_in
from tests.integrations.slack_bot.standin.clock import START

THREADS = 30
WORDS = 160
EVERY = 0.5
LAST_EVENT = START + 0.6 + 2.0 + WORDS * EVERY


def words(name: str) -> list[str]:
    return [f"{name}w{number}x" + ("\n\n" if number % 12 == 11 else " ") for number in range(WORDS)]


def script(name: str) -> Iterator[tuple[float, Event]]:
    """More than a minute of an answer, after an agent was asked."""
    for event in says("m1", f"{name}says"):
        yield 0.3, event
    yield 0.0, plan((f"Look for {name}", "argocd", "in_progress"))
    for event in works("argocd", "c1", "s0"):
        yield 1.0, event
    yield 0.0, plan((f"Look for {name}", "argocd", "completed"), (f"Tell {name}", "", "in_progress"))
    for word in words(name):
        yield EVERY, TextDelta(SUPERVISOR, "m2", word)
    yield 0.0, plan((f"Look for {name}", "argocd", "completed"), (f"Tell {name}", "", "completed"))
    yield 0.0, MessageEnded(SUPERVISOR, "m2")
    yield 0.0, FinalResult("".join(words(name)), "m2")


class Crowd:
    def __init__(self, slack: Slack, stage: Stage, places: dict[str, ThreadPlace]) -> None:
        self.slack = slack
        self.stage = stage
        self.places = places

    def first_text(self, name: str) -> float:
        """Seconds from the first event to the first text."""
        place = self.places[name]
        seen = self.slack.history.first_text(place.channel, place.thread_ts)
        assert seen is not None
        return seen - self.stage.supervisor.first_event[name]

    def silences(self, name: str) -> list[float]:
        """Seconds between two changes of what the bot has said in a thread."""
        place = self.places[name]
        moments = self.slack.history.of(place.channel, place.thread_ts)
        texts: dict[str, float] = {}
        for moment in moments:
            said = "".join(one.text for one in moment.transcript.messages if one.author == self.slack.app.user_id)
            texts.setdefault(said.replace(STOPPABLE, ""), moment.time)
        return [later - earlier for earlier, later in pairwise(texts.values())]


@pytest_asyncio.fixture(params=["a channel each", "one channel"], scope="module", loop_scope="module")
async def crowd(request: pytest.FixtureRequest) -> Crowd:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack, staged(slack, script, clock) as stage:
        people = [slack.person(f"person{number}") for number in range(THREADS)]
        together = slack.channel("together", *people)
        places: dict[str, ThreadPlace] = {}
        for number, person in enumerate(people):
            channel = together if request.param == "one channel" else slack.channel(f"channel{number}", person)
            name = f"n{number}n"
            places[name] = await stage.ask(person, channel, name)
        async with clock.passing():
            await stage.done()
        return Crowd(slack, stage, places)


@pytest.mark.long
async def test_thirty_threads_at_once(crowd: Crowd) -> None:
    for name, place in crowd.places.items():
        text = crowd.stage.text(place)
        assert re.findall(r"n\d+n", text) == [name] * (WORDS + 1), "text of others, or not once"
        assert "".join(text.split()) == f"{name}says" + "".join("".join(words(name)).split())
        answers = crowd.stage.answers(place)
        assert not any(message.streaming for message in answers)
        titles = {card.title: card.status for message in answers for card in message.cards}
        assert titles == {f"[Argocd] Look for {name}": "complete", f"Tell {name}": "complete"}
        lost = crowd.slack.history.taken_back(place.channel, place.thread_ts)
        assert [one for one in lost if one.before != STOPPABLE] == []
    assert crowd.slack.violations == []
    assert not any(call.error == "ratelimited" for call in crowd.slack.calls())


@pytest.mark.long
async def test_no_thread_starves_while_others_write(crowd: Crowd) -> None:
    firsts = [crowd.first_text(name) for name in crowd.places]
    # So few of them can stream, and in one channel Slack takes a message a second.
    assert max(firsts) <= (0.5 if len({place.channel for place in crowd.places.values()}) > 1 else THREADS / 2)
    silences = [max(crowd.silences(name)) for name in crowd.places]
    assert max(silences) < 40.0
    for name, place in crowd.places.items():
        first_sign = crowd.slack.history.first_sign(place.channel, place.thread_ts)
        assert first_sign is not None
        assert first_sign - float(place.thread_ts) < 1.0, f"{name} saw no sign of life"
        ended = max(moment.time for moment in crowd.slack.history.of(place.channel, place.thread_ts))
        assert ended - LAST_EVENT < 65.0
