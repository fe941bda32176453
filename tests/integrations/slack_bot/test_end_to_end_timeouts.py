"""A supervisor that is away for a while is waited for, by a bot that knew it and by one that never found it. Where it
stays away, the requester gets one message in time, and can ask again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integrations.slack_bot.installation import Installation, Service, Thread, installation, repositories
from tests.integrations.slack_bot.played_model import Call, Pause, PlayedModel

pytestmark = pytest.mark.asyncio(loop_scope="package")

LONG, SHORT = 180.0, 4.0
LATE = 30.0
"""What a busy machine adds; with it, SHORT is still far from the default of a minute."""
WARNING = "⚠️"


@asynccontextmanager
async def away(supervisor: Service) -> AsyncIterator[None]:
    """It is killed, and there again at the end, whatever happens in between."""
    lives = len(supervisor.lives)
    await supervisor.kill()
    try:
        yield
    finally:
        if len(supervisor.lives) == lives:
            await supervisor.start()


@asynccontextmanager
async def with_timeout(folder: Path, supervisor: Service, seconds: float) -> AsyncIterator[Installation]:
    async with installation(folder, supervisor.url, socket_mode=False, SUPERVISOR_TIMEOUT=str(seconds)) as acme:
        yield acme
        acme.check(also={"the supervisor": supervisor.output}, addresses=(supervisor.url.removeprefix("http://"),))


async def asked(acme: Installation, question: str) -> Thread:
    """A person has asked, and the bot has received it."""
    thread = await acme.asks(acme.person(), question)
    await acme.slack.deliveries.finish()
    return thread


async def check_answered(thread: Thread, text: str) -> None:
    await thread.answered()
    assert thread.said.count(text) == 1, thread.text
    assert WARNING not in thread.said
    thread.check()


async def failed_at(thread: Thread, text: str) -> float:
    """The time at which the requester got the failure, once, with a way to retry."""
    await thread.until(lambda: thread.has_button("Try again"), SHORT + 2 * LATE)
    at = time.monotonic()
    await thread.until(thread.is_at_rest)
    assert thread.said.count(WARNING) == 1, thread.text
    assert text in thread.said
    return at


async def check_tried_again(thread: Thread, text: str) -> None:
    await thread.person.presses(thread.with_button("Try again"), "Try again")
    await thread.answered()
    assert (thread.said.count(text), thread.said.count(WARNING)) == (1, 1), thread.text
    thread.check()


@pytest.fixture
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One for each bot."""
    return tmp_path_factory.mktemp("knows"), tmp_path_factory.mktemp("finds")


async def test_it_is_back_in_time(folders: tuple[Path, Path], thinker: Service, model: PlayedModel) -> None:
    known, unknown, form = "Does it know it?", "Does it find it?", "A repository of timeouts"
    model.parts |= {
        known: [["It was there before.\n"]],
        unknown: [["It is there now.\n"]],
        form: [[Call("start_workflow", {"name": "create_github_repo", "inputs": {}})], ["It is made.\n"]],
    }
    async with with_timeout(folders[0], thinker, LONG) as acme:
        waiting = await acme.asks(acme.person(), form)
        await waiting.until(lambda: waiting.has_button("Submit"))
        question = waiting.with_button("Submit")
        await waiting.person.fills_in(question, {"repository": "timeouts"})
        async with away(thinker), with_timeout(folders[1], thinker, LONG) as other:
            await waiting.person.presses(question, "Submit")
            first, second = await asked(acme, known), await asked(other, unknown)
            # Long enough to have tried in vain.
            await asyncio.sleep(1)
            assert not first.answers + second.answers + waiting.answers
            await thinker.start()
            await check_answered(second, "It is there now.")
        await check_answered(first, "It was there before.")
        await check_answered(waiting, "It is made.")
    assert [len(model.asked(question)) for question in (known, unknown)] == [1, 1]
    assert repositories(thinker).count("timeouts") == 1


async def test_it_is_not_back_in_time(folders: tuple[Path, Path], thinker: Service, model: PlayedModel) -> None:
    begun, known, unknown = "Does it lose it?", "Does it miss it?", "Does it look for it?"
    pause = Pause()
    model.parts |= {
        begun: [["It begins.\n\n", pause, "It ends.\n"]],
        known: [["It was there before.\n"]],
        unknown: [["It is there now.\n"]],
    }
    async with with_timeout(folders[0], thinker, SHORT) as acme:
        lost = await acme.asks(acme.person(), begun)
        await lost.until(lambda: "It begins." in lost.said)
        since = time.monotonic()
        async with away(thinker):
            missed = await asked(acme, known)
            times = await asyncio.gather(
                failed_at(lost, "did not come back"), failed_at(missed, "I cannot reach the supervisor")
            )
            async with with_timeout(folders[1], thinker, SHORT) as other:
                since_other = time.monotonic()
                sought = await asked(other, unknown)
                waited = await failed_at(sought, "I cannot reach the supervisor") - since_other
                pause.end()
                await thinker.start()
                await check_tried_again(sought, "It is there now.")
        for seconds in (*(at - since for at in times), waited):
            assert SHORT / 2 < seconds < SHORT + LATE
        await check_tried_again(missed, "It was there before.")
        await check_tried_again(lost, "It ends.")
    # The failed attempts did not reach the model: it got each question once.
    assert [len(model.asked(question)) for question in (known, unknown)] == [1, 1]
