"""Which agents run where, as the supervisor builds them: one process, any mix of in-process and remote."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import (
    AIPlatformEngineerMAS,
    PlatformEngineerDeepAgent,
    _agent_is_distributed,
    _get_distributed_agents,
)
from ai_platform_engineering.settings import load_settings

SANDBOX_AGENTS = {"argocd", "jira", "github", "pagerduty", "netutils"}


@asynccontextmanager
async def started(folder: Path, environ: Mapping[str, str]) -> AsyncIterator[PlatformEngineerDeepAgent]:
    settings = load_settings({"DATA_DIR": str(folder), "AGENT_CONNECTIVITY_TIMEOUT": "1", **environ}, env_file=None)
    mas = PlatformEngineerDeepAgent(settings)
    await mas.start()
    try:
        yield mas
    finally:
        await mas.aclose()


def names(mas: PlatformEngineerDeepAgent) -> tuple[set[str], set[str]]:
    """In-process agents that have tools, and remote agents."""
    local = {entry.name for entry in mas.registry.local() if mas.mcp.tools(entry.name)}
    return local, {entry.name for entry in mas.registry.remote()}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, set()),
        ({"DISTRIBUTED_AGENTS": ""}, set()),
        ({"DISTRIBUTED_AGENTS": "argocd,aws"}, {"argocd", "aws"}),
        ({"DISTRIBUTED_AGENTS": " ArgoCD , ,AWS,"}, {"argocd", "aws"}),
        ({"DISTRIBUTED_AGENTS": "all"}, {"__all__"}),
        ({"DISTRIBUTED_AGENTS": "argocd, ALL"}, {"__all__"}),
        ({"DISTRIBUTED_MODE": "true"}, {"__all__"}),
        ({"DISTRIBUTED_MODE": "false"}, set()),
        ({"DISTRIBUTED_MODE": "true", "DISTRIBUTED_AGENTS": "argocd"}, {"argocd"}),
        ({"DISTRIBUTED_MODE": "true", "DISTRIBUTED_AGENTS": " "}, {"__all__"}),
    ],
)
def test_distributed_agents_come_from_the_environment(
    environ: dict[str, str], expected: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("DISTRIBUTED_AGENTS", "DISTRIBUTED_MODE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    assert _get_distributed_agents() == expected


def test_all_covers_every_agent_and_a_list_only_its_own() -> None:
    assert _agent_is_distributed("jira", {"__all__"})
    assert _agent_is_distributed("jira", {"jira"})
    assert not _agent_is_distributed("jira", {"argocd"})
    assert not _agent_is_distributed("jira", set())


async def test_unset_means_everything_in_process(tmp_path: Path) -> None:
    async with started(tmp_path, {}) as mas:
        assert names(mas) == (SANDBOX_AGENTS, set())
        assert mas.distributed_mode is False


async def test_a_named_agent_is_remote_and_the_others_have_their_tools_here(tmp_path: Path) -> None:
    environ = {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": "http://127.0.0.1:9"}
    async with started(tmp_path, environ) as mas:
        assert names(mas) == (SANDBOX_AGENTS - {"argocd"}, {"argocd"})
        assert mas.distributed_mode is True
        assert not mas.mcp.tools("argocd")


@pytest.mark.parametrize("environ", [{"DISTRIBUTED_AGENTS": "all"}, {"DISTRIBUTED_MODE": "true"}])
async def test_all_and_the_old_mode_make_every_enabled_agent_remote(environ: dict[str, str], tmp_path: Path) -> None:
    addresses = {f"{name.upper()}_AGENT_URL": "http://127.0.0.1:9" for name in SANDBOX_AGENTS}
    async with started(tmp_path, {**environ, **addresses}) as mas:
        assert names(mas) == (set(), SANDBOX_AGENTS)


async def test_a_disabled_agent_is_skipped_wherever_it_was_placed(tmp_path: Path) -> None:
    async with started(tmp_path, {"DISTRIBUTED_AGENTS": "argocd", "ENABLE_ARGOCD": "false"}) as mas:
        assert names(mas) == (SANDBOX_AGENTS - {"argocd"}, set())
        assert mas.distributed_mode is False


async def test_the_more_specific_variable_wins(tmp_path: Path) -> None:
    environ = {"DISTRIBUTED_MODE": "true", "DISTRIBUTED_AGENTS": "jira", "JIRA_AGENT_URL": "http://127.0.0.1:9"}
    async with started(tmp_path, environ) as mas:
        assert names(mas) == (SANDBOX_AGENTS - {"jira"}, {"jira"})


async def test_an_agent_known_only_by_its_address_is_remote(tmp_path: Path) -> None:
    async with started(tmp_path, {"WEATHER_AGENT_URL": "http://127.0.0.1:9"}) as mas:
        assert names(mas) == (SANDBOX_AGENTS, {"weather"})


async def test_langgraph_studio_brings_its_own_checkpointer(tmp_path: Path) -> None:
    async with started(tmp_path, {"LANGGRAPH_DEV": "1"}) as mas:
        assert mas.graph.checkpointer is None
    async with started(tmp_path, {}) as mas:
        assert mas.graph.checkpointer is not None


def test_there_is_one_supervisor_class_and_one_file_a_layer() -> None:
    assert AIPlatformEngineerMAS is PlatformEngineerDeepAgent
    package = Path(__file__).resolve().parents[3] / "ai_platform_engineering"
    assert not [*package.rglob("*_single*")]
    layers = ("deep_agent.py", "agent.py", "agent_executor.py", "main.py")
    for layer in layers:
        assert len([*(package / "multi_agents").rglob(layer)]) == 1
