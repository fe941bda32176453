"""A bot that is killed or stopped at any moment: the next one goes on, and people see everything once."""

from __future__ import annotations

import re

import pytest
from a2a.types.a2a_pb2 import Message

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Event,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    TextDelta,
)
from ai_platform_engineering.forms.answers import Submitted
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Stop as StopButton
from tests.integrations.slack_bot.bot_world import ANNA, World, incoming

RUN = "slack-T1-C1-1.0"
FORM = Form("form-1", "Which environment?", (FormField("environment"),))
PLAN = PlanUpdated((PlanStep("1", "look", "in_progress", 0, "argocd"),), "The plan")
FIRST: list[Event] = [
    PLAN,
    TextDelta(SUPERVISOR, "m1", "one two. "),
    TextDelta(SUPERVISOR, "m1", "three\n\nfour. "),
    MessageEnded(SUPERVISOR, "m1"),
    AgentStarted("argocd", "call-1", None, "1"),
    AgentFinished("argocd", "call-1", True, None, None, "1"),
    InputRequired((FORM,)),
]
THEN: list[Event] = [
    TextDelta(SUPERVISOR, "m2", "five "),
    TextDelta(SUPERVISOR, "m2", "six\n\nseven "),
    TextDelta(SUPERVISOR, "m2", "eight "),
    MessageEnded(SUPERVISOR, "m2"),
    FinalResult("five six\n\nseven eight ", "m2"),
]
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
PAUSES = [0.0, 0.3, 2.5]
"""Seconds between two events: more than can be written, as much, and so little that there is a button to stop."""


def script(_: Message) -> list[list[Event]]:
    return [list(FIRST), list(THEN)]


async def tell(world: World) -> None:
    """A person asks, gets a form, answers it, and gets the answer."""
    await ask(world)
    await world.bot.answer("task-1", "form-1", Submitted({"environment": "prod"}), ANNA)
    await world.outlive()
    await world.bot.answer("task-1", "form-1", Submitted({"environment": "prod"}), ANNA)
    await end(world)


async def tell_in_words(world: World) -> None:
    """The same, but the answer is a message, which Slack sends again."""
    await ask(world)
    await world.bot.take(incoming("environment: prod", ts="2.0"))
    await world.outlive()
    await world.bot.take(incoming("environment: prod", ts="2.0"))
    await end(world)


async def ask(world: World) -> None:
    await world.bot.start()
    await world.bot.take(incoming())
    await world.outlive()
    # Slack sends it again, because it was not acknowledged.
    await world.bot.take(incoming())
    await world.until(lambda: any(shown.form for shown in world.slack.messages) and not world.bot.open_threads)


async def end(world: World) -> None:
    await world.until(lambda: _is_done(world) and not world.bot.open_threads)
    await world.end()


def _is_done(world: World) -> bool:
    run = world.store.run(RUN)
    return run is not None and run.done


def check(world: World, note: str = "Answered by <@UANNA>: environment: prod") -> None:
    messages = world.slack.messages
    assert re.findall("[a-z]+", world.slack.text) == WORDS
    assert "Argocd" in world.slack.words
    assert not any(shown.streaming or isinstance(shown.footer, StopButton) for shown in messages)
    assert [shown.note for shown in messages if shown.form] == [note]
    assert [len(work.heard) for work in world.supervisor.tasks.values()] == [2]


@pytest.mark.long
@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("how", ["kill_at", "stop_at"])
async def test_everything_is_seen_once_whenever_the_bot_ends(how: str, pause: float) -> None:
    whole = World(script, pause=pause)
    await tell(whole)
    check(whole)
    for moment in range(1, whole.moments + 1):
        world = World(script, pause=pause, **{how: moment})  # type: ignore[arg-type]
        try:
            await tell(world)
            check(world)
        except AssertionError as error:
            raise AssertionError(f"{how}={moment}: {error}") from error


@pytest.mark.long
async def test_an_answer_in_words_is_given_once_whenever_the_bot_is_killed() -> None:
    whole = World(script)
    await tell_in_words(whole)
    for moment in range(1, whole.moments + 1):
        world = World(script, kill_at=moment)
        try:
            await tell_in_words(world)
            check(world, "Answered by <@UANNA> in the thread.")
        except AssertionError as error:
            raise AssertionError(f"kill_at={moment}: {error}") from error
