"""SIGKILL for a supervisor that works alone, after every event of a run: after its restart the run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from ai_platform_engineering.events import FinalResult
from tests.invariants import check_task
from tests.recovery.client import FollowedTask, Frame, TaskClient
from tests.recovery.processes import Restartable
from tests.recovery.scenario import Release
from tests.recovery.stage import KillAtEach, Stage, check_killed_everywhere, staged

SHARDS = 4
IN_ONE_RUN = (
    "question accepted",
    "text_delta",
    "text_delta jira",
    "tool_started add_note",
    "answer accepted",
    "tool_finished create_issue",
    "final_result",
)


@asynccontextmanager
async def alone(data_dir: Path, port: int) -> AsyncIterator[tuple[Stage, Restartable]]:
    async with staged(data_dir) as stage, Restartable(["serve"], port, stage.environ()) as supervisor:
        stage.url = supervisor.url
        yield stage, supervisor


@pytest.mark.long
async def test_a_run_goes_on_after_each_of_many_kills(tmp_path: Path, unused_port: int) -> None:
    async with alone(tmp_path, unused_port) as (stage, supervisor):
        await stage.check(await stage.ask(stream_sub_agent_text=True))
        kill = KillAtEach([*IN_ONE_RUN], supervisor.restart)
        await stage.check(await stage.ask(kill, stream_sub_agent_text=True))
        assert not kill.points, f"never came: {kill.points[0]}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_a_run_goes_on_after_a_kill_at_any_event(tmp_path: Path, unused_port: int, shard: int) -> None:
    async with alone(tmp_path, unused_port) as (stage, supervisor):
        assert await check_killed_everywhere(stage, supervisor.restart, shard, SHARDS) > 4


@pytest.mark.long
async def test_questions_that_wait_their_turn_are_answered_after_a_kill(tmp_path: Path, unused_port: int) -> None:
    async with alone(tmp_path, unused_port) as (stage, supervisor):
        first, *later = (Release(), Release(), Release())
        client = TaskClient(stage.http, stage.url)
        waiting: list[asyncio.Task[FollowedTask]] = []

        async def ask_more_and_kill(frame: Frame) -> bool:
            if frame.kind != "working" or waiting:
                return False
            for release in later:
                accepted = asyncio.Event()
                waiting.append(asyncio.create_task(client.ask(release.follow_up, partial(note_accepted, accepted))))
                await accepted.wait()
            await supervisor.restart()
            return True

        task = await client.ask(first.question, ask_more_and_kill)
        assert isinstance(check_task(task.events), FinalResult)
        for release, answered in zip(later, await asyncio.gather(*waiting), strict=True):
            ending = check_task(answered.events)
            assert isinstance(ending, FinalResult)
            assert release.name in ending.text
        questions = [
            message["content"] for message in stage.model.history(later[-1].follow_up) if message["role"] == "user"
        ]
    assert questions == [first.question, *(release.follow_up for release in later)]


async def note_accepted(accepted: asyncio.Event, frame: Frame) -> bool:
    if frame.kind == "question accepted":
        accepted.set()
    return False
