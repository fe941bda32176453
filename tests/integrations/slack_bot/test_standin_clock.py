from __future__ import annotations

import asyncio

import pytest

from tests.integrations.slack_bot.standin import VirtualClock, standing_in
from tests.integrations.slack_bot.standin.clock import START


async def test_everybody_wakes_in_turn_at_their_time() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            woken.append((name, clock.now() - START))

    tasks = [asyncio.create_task(sleeper("a", 3, 3)), asyncio.create_task(sleeper("b", 4))]
    await clock.advance(5)
    assert woken == [("a", 3), ("b", 4)]
    assert clock.now() == START + 5
    await clock.advance(1)
    assert woken[-1] == ("a", 6)
    await asyncio.gather(*tasks)


async def test_a_canceled_sleep_is_not_woken() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(10))
    await clock.settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with clock.passing():
        await clock.sleep(20)
    assert clock.now() == START + 20


async def test_time_waits_for_what_is_under_way() -> None:
    busy = True
    clock = VirtualClock(busy=lambda: busy)
    async with clock.passing():
        nap = asyncio.create_task(clock.sleep(1))
        await asyncio.sleep(0.02)
        assert clock.now() == START
        busy = False
        await nap
    assert clock.now() == START + 1


async def test_an_unacknowledged_event_is_sent_again_after_one_and_five_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.integrations.slack_bot.standin.deliveries.REAL_ACK_SECONDS", 0.01)
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack:
        ada = slack.person("ada")
        async with clock.passing():
            await ada.says(slack.direct(ada), "is anybody there?")
            await slack.deliveries.finish()
        assert [ack.problem for ack in slack.acks] == ["connection_failed"] * 4
        assert clock.now() == START + 360
