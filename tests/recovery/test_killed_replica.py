"""Two supervisors on one Postgres behind a proxy: the one that runs a task is killed or stopped, the other goes on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from tests.ports import reserved_port
from tests.recovery.client import Frame
from tests.recovery.processes import Restartable
from tests.recovery.proxy import RoundRobin, round_robin
from tests.recovery.scenario import Release
from tests.recovery.stage import Kill, Stage, after, at_frame, noted, staged

pytest_plugins = ("tests.services.fixtures",)

NAMES = ("first", "second")
SHARDS = 4
QUICK_PLACES = (4, 18, 26)
# Not during a change: a process that is stopped in its transaction would lock the file of the sandbox for all others.
STOPS = (
    after("working"),
    after("text_delta"),
    after("plan_updated", "text_delta"),
    after("agent_started jira"),
    after("answer accepted"),
    after("agent_finished jira"),
    after("agent_finished jira", "text_delta"),
    after("final_result"),
)
STREAMS = 8


@dataclass
class Replicas:
    """`down` is the replica that does not work at the moment."""

    stage: Stage
    proxy: RoundRobin
    members: dict[str, Restartable] = field(default_factory=dict)
    down: Restartable | None = None

    async def runner(self, release: Release) -> Restartable:
        """The replica that runs the conversation."""
        return self.members[await self.stage.model.caller_about(release.name)]

    async def take_away(self, release: Release, *, kill: bool) -> None:
        """Kill or stop the replica that runs the conversation."""
        self.down = await self.runner(release)
        # A load balancer finds out by its health checks.
        self.proxy.ports.remove(self.down.port)
        if kill:
            await self.down.kill()
        else:
            self.down.send(signal.SIGSTOP)

    async def bring_back(self) -> None:
        """Let the missing replica go on, or start it again."""
        if self.down is not None:
            if self.down.runs:
                self.down.send(signal.SIGCONT)
            else:
                await self.down.start()
            self.proxy.ports.append(self.down.port)
            self.down = None


@asynccontextmanager
async def replicated(data_dir: Path, database: str, **more: str) -> AsyncIterator[Replicas]:
    async with AsyncExitStack() as stack:
        ports = [stack.enter_context(reserved_port()) for _ in NAMES]
        stage = await stack.enter_async_context(staged(data_dir))
        proxy = await stack.enter_async_context(round_robin(ports))
        stage.url = proxy.url
        replicas = Replicas(stage, proxy)
        shared = {"EVENT_LOG": "postgres", "LANGGRAPH_CHECKPOINT_POSTGRES_DSN": database, **more}
        for name, port in zip(NAMES, ports, strict=True):
            member = Restartable(["serve"], port, stage.environ(name) | shared)
            replicas.members[name] = await stack.enter_async_context(member)
        await stage.check(await stage.ask())
        yield replicas


async def check_killed(replicas: Replicas, place: int) -> bool:
    """A conversation whose replica is killed at a frame, if it gets there."""
    release = Release()
    kill = Kill(at_frame(place), partial(replicas.take_away, release, kill=True))
    with noted(kill):
        await replicas.stage.check(await replicas.stage.ask(kill, release))
    await replicas.bring_back()
    return kill.done


async def check_stopped(replicas: Replicas, stop_at: Callable[[Sequence[Frame]], bool]) -> None:
    """A conversation whose replica is stopped until another one has finished the task."""
    release = Release()
    stop = Kill(stop_at, partial(replicas.take_away, release, kill=False))
    with noted(stop):
        conversation = await replicas.stage.ask(stop, release)
        stopped = replicas.down
        assert stopped is not None
        await replicas.bring_back()
        # During a whole conversation that it serves, it has the time to go on with the other one.
        through_it = replace(replicas.stage, url=stopped.url)
        await through_it.check(await through_it.ask())
        assert await conversation.client.read(conversation.task) == conversation.task.updates
        await replicas.stage.check(conversation)
    assert not [line for line in stopped.output if " ERROR " in line]


@pytest.mark.long
async def test_another_replica_takes_over_the_task_of_a_killed_one(tmp_path: Path, database: str) -> None:
    async with replicated(tmp_path, database) as replicas:
        for place in QUICK_PLACES:
            assert await check_killed(replicas, place)
        await check_stopped(replicas, after("agent_finished jira", "text_delta"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_another_replica_takes_over_after_a_kill_at_any_event(tmp_path: Path, database: str, shard: int) -> None:
    async with replicated(tmp_path, database) as replicas:
        place = shard
        while await check_killed(replicas, place):
            place += SHARDS
        assert place > 4 * SHARDS


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_replica_that_was_stopped_writes_nothing_into_a_task_that_was_taken_over(
    tmp_path: Path, database: str
) -> None:
    async with replicated(tmp_path, database) as replicas:
        for stop_at in STOPS:
            await check_stopped(replicas, stop_at)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_rolling_update_under_load_loses_nothing(tmp_path: Path, database: str) -> None:
    async with replicated(tmp_path, database, SHUTDOWN_GRACE="1") as replicas:
        updated = asyncio.Event()
        started = [asyncio.Event() for _ in range(STREAMS)]

        async def converse(number: int) -> None:
            while not updated.is_set():
                started[number].set()
                await replicas.stage.check(await replicas.stage.ask())

        async with asyncio.TaskGroup() as streams:
            for number in range(STREAMS):
                streams.create_task(converse(number))
            for event in started:
                await event.wait()
            for member in replicas.members.values():
                await member.terminate()
                await member.start()
            updated.set()
