"""The real Kubernetes server in front of an API that has a Secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ai_platform_engineering.manifest import builtin_directory, read_manifest
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.settings import load_settings
from tests.agents.kube_api import PASSWORD, kube_api
from tests.approvals.calls import person, placements
from tests.services.mcp_servers import installed_servers

pytestmark = pytest.mark.process

SHOP = {"apiVersion": "v1", "name": "shop", "namespace": "default"}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    own = {"KUBERNETES_KUBECONFIG": str(tmp_path / "kubeconfig"), "DATA_DIR": str(tmp_path), "ENABLE_RAG": "false"}
    more = {"MCP_START_TIMEOUT": "120", "ENABLE_NETUTILS": "false"}
    return {**os.environ, **own, **more, **installed_servers("kubernetes")}


@placements
async def test_secrets_are_refused_before_the_server_is_asked(environ: dict[str, str], remote: bool) -> None:
    async with kube_api(Path(environ["KUBERNETES_KUBECONFIG"])) as api, person("kubernetes", environ, remote) as asked:
        await asked.ask("resources_get", kind="ConfigMap", **SHOP)
        assert asked.outcome().ok
        for call in (("resources_get", "Secret"), ("resources_get", "secret"), ("resources_list", "Secret")):
            tool, kind = call
            await asked.ask(tool, kind=kind, apiVersion="v1", namespace="default", name="shop")
            assert asked.outcome().reason == "the manifest of kubernetes denies this value of 'kind'"
    assert not [path for path, _ in api.requests if "secrets" in path]
    assert PASSWORD not in str(asked.talk.events)


async def test_the_server_denies_them_as_well(environ: dict[str, str]) -> None:
    manifest = read_manifest(builtin_directory() / "kubernetes" / "agent.yaml")
    servers = McpServers(load_settings(environ, env_file=None))
    async with kube_api(Path(environ["KUBERNETES_KUBECONFIG"])) as api:
        try:
            await servers.start({"kubernetes": manifest.servers}, deadline=120)
            [get] = [tool for tool in servers.tools("kubernetes") if tool.name == "resources_get"]
            assert "blue" in await get.ainvoke({"kind": "ConfigMap", **SHOP})
            with pytest.raises(Exception, match="resource not allowed"):
                await get.ainvoke({"kind": "Secret", **SHOP})
        finally:
            await servers.aclose()
    assert not [path for path, _ in api.requests if "secrets" in path]
