"""Stopping tasks whose code does not let go at the first cancellation."""

from __future__ import annotations

import asyncio

import pytest

from ai_platform_engineering.utils.background_tasks import stop_tasks


async def test_tasks_end_also_if_cancellations_are_lost(caplog: pytest.LogCaptureFixture) -> None:
    lost = 0

    async def survive_two() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                lost += 1
                if lost > 2:
                    raise

    async def fail() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise OSError("secret") from None

    tasks = [asyncio.create_task(work(), name=work.__name__) for work in (survive_two, fail)]
    await asyncio.sleep(0)
    await stop_tasks(*tasks, repeat_seconds=0.01)
    assert tasks[0].cancelled()
    assert lost == 3
    assert [record.getMessage() for record in caplog.records] == ["fail failed: OSError"]


async def test_there_may_be_no_task_or_one_that_has_ended() -> None:
    await stop_tasks()
    ended = asyncio.create_task(asyncio.sleep(0))
    await ended
    await stop_tasks(ended)
    assert not ended.cancelled()
