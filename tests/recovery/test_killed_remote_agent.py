"""An agent with a server of its own: SIGKILL for the agent, or for the supervisor while the agent works on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from tests.ports import reserved_port
from tests.recovery.processes import Restartable
from tests.recovery.stage import Disrupt, KillAtEach, Stage, check_killed_everywhere, staged

SHARDS = 3
AGENT_IN_ONE_RUN = ("tool_started search_issues", "tool_started create_issue", "answer accepted")
SUPERVISOR_IN_ONE_RUN = ("tool_started search_issues", "answer accepted", "tool_finished create_issue")

Killed = Literal["agent", "supervisor"]


@dataclass
class Pair:
    """A supervisor and a Jira agent elsewhere."""

    stage: Stage
    agent: Restartable
    supervisor: Restartable

    def restart(self, killed: Killed) -> Disrupt:
        return self.agent.restart if killed == "agent" else self.supervisor.restart


@asynccontextmanager
async def with_remote_agent(data_dir: Path) -> AsyncIterator[Pair]:
    with reserved_port() as agent_port, reserved_port() as port:
        async with staged(data_dir) as stage:
            remote = {"DISTRIBUTED_AGENTS": "jira", "JIRA_AGENT_URL": f"http://127.0.0.1:{agent_port}"}
            environ = stage.environ() | remote
            async with (
                Restartable(["agent", "jira"], agent_port, environ) as agent,
                Restartable(["serve"], port, environ) as supervisor,
            ):
                stage.url = supervisor.url
                yield Pair(stage, agent, supervisor)


@pytest.mark.long
@pytest.mark.parametrize(
    ("killed", "points"),
    [("agent", AGENT_IN_ONE_RUN), ("supervisor", SUPERVISOR_IN_ONE_RUN)],
    ids=["agent", "supervisor"],
)
async def test_a_delegation_goes_on_after_each_of_many_kills(
    tmp_path: Path, killed: Killed, points: tuple[str, ...]
) -> None:
    async with with_remote_agent(tmp_path) as pair:
        await pair.stage.check(await pair.stage.ask(stream_sub_agent_text=True))
        kill = KillAtEach([*points], pair.restart(killed))
        await pair.stage.check(await pair.stage.ask(kill, stream_sub_agent_text=True))
        assert not kill.points, f"never came: {kill.points[0]}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("killed", ["agent", "supervisor"])
async def test_a_delegation_goes_on_after_a_kill_at_any_event(tmp_path: Path, killed: Killed, shard: int) -> None:
    async with with_remote_agent(tmp_path) as pair:
        assert await check_killed_everywhere(pair.stage, pair.restart(killed), shard, SHARDS) > 4
