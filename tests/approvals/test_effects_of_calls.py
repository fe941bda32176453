"""What calls to a real stdio server may do: through the supervisor, with the agent in it and on a server of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from ai_platform_engineering.graphs.agent_models import model_for
from tests.approvals.calls import person, placements
from tests.servers import CommandLine

pytestmark = pytest.mark.process

SERVER = {
    "name": "depot",
    "transport": "stdio",
    "command": sys.executable,
    "writes": ["sync_depot"],
    "destructive_when": {"sync_depot": {"prune": "true", "labels": "^force$"}},
    "deny": {"find_parcel": {"kind": "^secrets?$"}},
}
DEPOT = {
    "name": "depot",
    "description": "Parcels in the depot: find, note, delete, sync.",
    "keywords": ["depot", "parcel", "parcels"],
    "prompt": "You look after the depot.",
}
AGENTS_OF_THE_PRODUCT = ("NETUTILS", "ARGOCD", "GITHUB", "JIRA", "PAGERDUTY")


class Depot:
    """The agent's environment, and the calls that have reached its backend."""

    def __init__(self, folder: Path) -> None:
        # The server may create files here; the data directory is closed to it.
        self._calls = folder / "backend" / "calls"
        self._calls.parent.mkdir()
        agents = folder / "agents"
        agents.mkdir()
        script = Path(__file__).with_name("depot_server.py")
        manifest = {**DEPOT, "servers": [{**SERVER, "args": [str(script), str(self._calls)]}]}
        (agents / "depot.yaml").write_text(yaml.safe_dump(manifest))
        off = {f"ENABLE_{name}": "false" for name in (*AGENTS_OF_THE_PRODUCT, "RAG")}
        own = {"AGENTS_DIR": str(agents), "DATA_DIR": str(folder), "MCP_START_TIMEOUT": "60"}
        self.environ = {"PATH": os.environ["PATH"], "OFFLINE_MODEL_DELAY": "0", **off, **own}

    def calls(self) -> list[str]:
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [json.loads(line)[0] for line in lines]


@pytest.fixture
def depot(tmp_path: Path) -> Depot:
    return Depot(tmp_path)


@placements
async def test_whatever_may_write_waits_on_a_real_backend(depot: Depot, remote: bool) -> None:
    async with person("depot", depot.environ, remote) as asked:
        await asked.ask("find_parcel", name="a")
        assert (asked.forms, asked.outcome().ok) == ((), True)
        effects = {}
        for tool in ("note_parcel", "delete_parcel", "sync_depot"):
            await asked.ask(tool, name="b")
            effects[tool] = asked.effect_asked()
            await asked.answer(type="reject")
        assert effects == {"note_parcel": "write", "delete_parcel": "destructive", "sync_depot": "write"}
        assert depot.calls() == ["find_parcel"]


@placements
async def test_the_effect_is_that_of_the_arguments(depot: Depot, remote: bool) -> None:
    environ = depot.environ | {"REQUIRE_APPROVAL": "destructive"}
    async with person("depot", environ, remote) as asked:
        await asked.ask("sync_depot", name="a", prune=False)
        assert len(depot.calls()) == 1
        for more in ({"prune": True}, {"prune": "True"}, {"labels": ["slow", "FORCE"]}):
            await asked.ask("sync_depot", name="a", **more)
            assert asked.effect_asked() == "destructive"
            await asked.answer(type="reject")
        assert len(depot.calls()) == 1


@placements
async def test_an_approval_that_is_remembered_covers_nothing_more_severe(depot: Depot, remote: bool) -> None:
    async with person("depot", depot.environ, remote) as asked:
        await asked.ask("sync_depot", name="a")
        await asked.answer(type="approve", remember=True)
        await asked.ask("sync_depot", name="a")
        assert (asked.forms, len(depot.calls())) == ((), 2)
        await asked.ask("sync_depot", name="a", prune=True)
        assert asked.effect_asked() == "destructive"
        await asked.answer(type="reject")
        assert len(depot.calls()) == 2


@placements
async def test_denied_arguments_are_refused_also_when_a_person_typed_them(depot: Depot, remote: bool) -> None:
    environ = depot.environ | {"REQUIRE_APPROVAL_OVERRIDES": "depot=always"}
    async with person("depot", environ, remote) as asked:
        await asked.ask("find_parcel", name="a", kind="Secrets")
        assert (asked.forms, asked.outcome().ok) == ((), False)
        assert asked.outcome().reason == "the manifest of depot denies this value of 'kind'"
        await asked.ask("find_parcel", name="a")
        await asked.answer(type="edit", args={"kind": "secret"})
        assert (asked.forms, asked.outcome().ok) == ((), False)
        assert depot.calls() == []


@placements
async def test_the_offline_model_only_reads_from_a_real_backend(depot: Depot, remote: bool) -> None:
    async with person("depot", depot.environ, remote, model_for) as asked:
        await asked.say('use the depot: find the parcel with name "a-1"')
        assert depot.calls() == ["find_parcel"]
        await asked.say('sync the depot "main"')
        assert (asked.forms, asked.outcome().tool, asked.outcome().ok) == ((), "sync_depot", False)
        assert "LLM_PROVIDER" in (asked.outcome().reason or "")
        assert depot.calls() == ["find_parcel"]


async def test_serve_and_agent_warn_about_the_offline_model(depot: Depot) -> None:
    warning = "The offline model is used with real backends (depot)."
    serve = CommandLine(["serve", "--port", "0"], depot.environ)
    agent = CommandLine(["agent", "depot", "--port", "0"], depot.environ)
    await asyncio.gather(serve.__aenter__(), agent.__aenter__())
    await asyncio.gather(serve.stop(), agent.stop())
    for process in (serve, agent):
        assert any("WARNING" in line and warning in line for line in process.output)
        assert any("writes" in line.partition("approval: ")[2] for line in process.output if "is ready at" in line)
