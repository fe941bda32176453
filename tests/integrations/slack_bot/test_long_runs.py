"""Runs that take longer than a stream may, and answers that are longer than a message may be: all of it arrives, once,
in order. First in a model of a thread, then through Slack's Web API."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from ai_platform_engineering.events import SUPERVISOR, Event, FinalResult, MessageEnded, TextDelta
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import is_done
from ai_platform_engineering.integrations.slack_bot.words import STOPPABLE
from tests.integrations.slack_bot.scenes import Scene, begins, plan, reports, uses
from tests.integrations.slack_bot.scripted import staged
from tests.integrations.slack_bot.standin import Slack, VirtualClock, standing_in

FIVE_MINUTES = 300.0
SEVEN_MINUTES = 420.0
LENGTH = 50_000


def words_of(text: str) -> list[str]:
    return re.findall(r"w\d+x", text)


def long_run(every: float) -> Iterator[tuple[float, Event]]:
    """Text for seven minutes; meanwhile agents work, and a plan changes."""
    yield 0.0, plan(("Watch", "argocd", "in_progress"), ("Tell", "", "pending"))
    yield 0.0, begins("argocd", "c1", "s0")
    text = ""
    for number in range(int(SEVEN_MINUTES / every)):
        word = f"w{number}x" + ("\n\n" if number % 40 == 39 else ".\n" if number % 9 == 8 else " ")
        text += word
        yield every, TextDelta(SUPERVISOR, "m1", word)
        if number % 100 == 50:
            for event in uses("list_applications", "argocd", within="c1"):
                yield 0.0, event
    yield 0.0, reports("argocd", "c1", "s0")
    yield 0.0, plan(("Watch", "argocd", "completed"), ("Tell", "", "completed"))
    yield 0.0, MessageEnded(SUPERVISOR, "m1")
    yield 0.0, FinalResult(text, "m1")


def in_pieces(text: str, size: int, pause: float) -> Iterator[tuple[float, Event]]:
    for start in range(0, len(text), size):
        yield pause, TextDelta(SUPERVISOR, "m1", text[start : start + size])
    yield 0.0, MessageEnded(SUPERVISOR, "m1")
    yield 0.0, FinalResult(text, "m1")


def _paragraphs() -> str:
    sentences = (
        f"w{number}x is a word in a sentence of a paragraph.{' ' if number % 7 else chr(10) * 2}"
        for number in range(1_100)
    )
    return "".join(sentences)[:LENGTH]


def _with_code_and_tables() -> str:
    parts: list[str] = []
    number = 0
    while sum(map(len, parts)) < LENGTH:
        for kind in ("## w{}x\n\n", "Some words, among them w{}x, and more.\n\n", "- w{}x\n- another\n\n"):
            parts.append(kind.format(number := number + 1))
        parts.append(f"```yaml\nname: w{(number := number + 1)}x\nkind: thing\n```\n\n")
        rows = "".join(f"| w{(number := number + 1)}x | healthy |\n" for _ in range(4))
        parts.append(f"| name | state |\n| --- | --- |\n{rows}\n")
    return "".join(parts)


def _one_giant_paragraph() -> str:
    return "".join(f"w{number}x and " for number in range(5_000))[:LENGTH]


def _in_chinese() -> str:
    return "".join(f"w{number}x这是一个很长的句子，没有空格。" for number in range(2_500))[:LENGTH]


LONG_ANSWERS = {
    "paragraphs": _paragraphs(),
    "code and tables": _with_code_and_tables(),
    "one giant paragraph": _one_giant_paragraph(),
    "chinese": _in_chinese(),
}
each_long_answer = pytest.mark.parametrize("text", LONG_ANSWERS.values(), ids=LONG_ANSWERS.keys())


def squeezed(text: str) -> str:
    return "".join(text.split())


# In a model


def test_a_run_of_seven_minutes_is_told_without_a_gap_and_without_a_repeat() -> None:
    scene = Scene()
    for pause, event in long_run(0.25):
        scene.driver.wait(pause)
        scene.hear(event, then=0.0)
    scene.driver.finish()
    final = scene.heard[-1]
    assert isinstance(final, FinalResult)
    assert squeezed(scene.text) == squeezed(final.text)
    assert is_done(scene.driver.state)
    assert scene.model.longest_stream < FIVE_MINUTES - 30
    assert set(scene.statuses.values()) == {"complete"}
    assert [type(shown.footer) for shown in scene.model.messages if shown.footer] == [Rating]


@pytest.mark.long
@each_long_answer
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "at once"])
def test_fifty_thousand_characters_arrive_whole(text: str, streamed: bool) -> None:
    assert len(text) >= LENGTH
    scene = Scene()
    for pause, event in in_pieces(text, 150 if streamed else LENGTH * 2, 0.1):
        scene.driver.wait(pause)
        scene.hear(event, then=0.0)
    scene.driver.finish()
    assert is_done(scene.driver.state)
    assert scene.model.files == []
    assert words_of(scene.text) == words_of(text)
    if "```" not in text:
        assert squeezed(scene.text) == squeezed(text)
    assert all(shown.text.count("```") % 2 == 0 for shown in scene.model.messages)
    assert [type(shown.footer) for shown in scene.model.messages if shown.footer] == [Rating]


# Through Slack


@pytest.mark.long
async def test_seven_minutes_in_slack() -> None:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack, staged(slack, lambda _: long_run(0.5), clock) as stage:
        ada = slack.person("ada")
        place = await stage.ask(ada, slack.channel("help", ada), "watch it")
        async with clock.passing():
            await stage.done()
        expected = [event for _, event in long_run(0.5)][-1]
        assert isinstance(expected, FinalResult)
        assert squeezed(stage.text(place)) == squeezed(expected.text)
        assert clock.now() - slack.calls("chat.startStream")[0].time >= SEVEN_MINUTES
        check(slack, place.channel, place.thread_ts)
        streams = [call for call in slack.calls() if "Stream" in call.method]
        assert all(call.ok for call in streams), "a stream was used that Slack had ended"
        for start in slack.calls("chat.startStream"):
            ts = start.answer["ts"] if start.answer else ""
            (stop,) = [call for call in slack.calls("chat.stopStream") if call.get("ts") == ts]
            assert stop.time - start.time < FIVE_MINUTES - 30
        cards = [card for message in stage.answers(place) for card in message.cards]
        assert {card.status for card in cards} == {"complete"}


@pytest.mark.long
@each_long_answer
async def test_fifty_thousand_characters_in_slack(text: str) -> None:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack, staged(slack, lambda _: in_pieces(text, 400, 0.1), clock) as stage:
        ada = slack.person("ada")
        place = await stage.ask(ada, slack.channel("help", ada), "tell me all")
        async with clock.passing():
            await stage.done()
        assert words_of(stage.text(place)) == words_of(text)
        if "```" not in text:
            assert squeezed(stage.text(place)) == squeezed(text)
        check(slack, place.channel, place.thread_ts)


def check(slack: Slack, channel: str, thread_ts: str) -> None:
    assert slack.violations == []
    lost = slack.history.taken_back(channel, thread_ts)
    assert [one for one in lost if one.before != STOPPABLE] == []
    assert not any(message.streaming for message in slack.transcript(channel, thread_ts).messages)
