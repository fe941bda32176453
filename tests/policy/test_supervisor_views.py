"""The supervisor has one graph for all callers who see the same agents, and not one for each caller for ever."""

from __future__ import annotations

from itertools import combinations, islice
from pathlib import Path

import pytest
import yaml

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.multi_agents.platform_engineer import deep_agent
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.policy.file import read_policy
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext


@pytest.mark.long
async def test_graphs_are_shared_and_limited(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "ENABLE_RAG": "false"}
    supervisor = PlatformEngineerDeepAgent(load_settings(environ, None))
    await supervisor.start()
    try:
        agents = [entry.name for entry in supervisor.registry.enabled()]
        rules = [{"who": [f"group:{name}"], "agents": [name], "action": "deny"} for name in agents]
        file = tmp_path / "policy.yaml"
        file.write_text(yaml.safe_dump({"version": 1, "rules": rules}), encoding="utf-8")
        policy = read_policy(file)

        def graph(*hidden: str) -> object:
            caller = Principal("token", "ada", frozenset(hidden))
            return supervisor.graph_for(RequestContext("c", "t", "trace", caller=caller, policy=policy.of(caller)))

        assert graph() is supervisor.graph
        assert graph(agents[0]) is graph(agents[0])
        assert graph(agents[0]) is not graph(agents[1])
        everything = supervisor.graph
        for hidden in islice(combinations(agents, 3), deep_agent._MAX_VIEWS + 5):
            graph(*hidden)
        assert len(supervisor._graphs) <= deep_agent._MAX_VIEWS + 1
        assert supervisor.graph is everything
    finally:
        await supervisor.aclose()
