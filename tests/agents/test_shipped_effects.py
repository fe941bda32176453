"""The shipped manifests against the servers themselves: which tools exist, what they do, and which arguments they take.

The servers start as the manifests say and are asked for their tools.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp.types import Tool, ToolAnnotations

from ai_platform_engineering.approvals.effects import Effect, at_most
from ai_platform_engineering.graphs.approval_policy import ApprovalPolicy, ApprovalRequired, CallRefused
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp.tools import ToolNames, build_tool, tool_effect
from ai_platform_engineering.settings import load_settings
from tests.agents.expected_effects import EXPECTED, MILDER_THAN_ANNOTATED, expected
from tests.services.environment import not_here
from tests.services.shipped_servers import MANIFESTS, PATH, SERVERS, shipped_servers

STDIO = sorted(name for name, server in SERVERS.items() if server.transport == "stdio")

Listing = Mapping[str, list[Tool] | str]
"""The tools of a server, or why it has not listed them."""


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Listing:
    return shipped_servers(tmp_path_factory).tools


def has_interpreter(server: McpServer) -> bool:
    """Whether the version of Python that its package needs is installed here."""
    file = Path(server.package or "") / ".python-version"
    if not file.is_file():
        return True
    version = file.read_text().strip()
    uv = shutil.which("uv", path=PATH) or "uv"
    command = [uv, "python", "find", "--no-python-downloads", version]
    return subprocess.run(command, env={**os.environ, "PATH": PATH}, capture_output=True, check=False).returncode == 0


def tools_of(listing: Listing, name: str) -> list[Tool]:
    found = listing[name]
    if isinstance(found, str):
        if not has_interpreter(SERVERS[name]):
            pytest.skip(f"{name} needs a Python that is not installed here")
        not_here(found)
    return found


def stated_effect(annotations: ToolAnnotations | None) -> Effect:
    """The least that the server says of the tool, without the defaults for what it leaves open."""
    if annotations is None or annotations.readOnlyHint:
        return "read"
    if annotations.destructiveHint:
        return "destructive"
    return "read" if annotations.readOnlyHint is None and annotations.destructiveHint is None else "write"


def test_every_tool_of_every_manifest_is_in_the_table_with_its_effect() -> None:
    assert EXPECTED.keys() == SERVERS.keys()
    for name, server in SERVERS.items():
        if server.tools is not None:
            assert {tool: server.effect(tool) for tool in server.tools} == expected(name), name


@pytest.mark.slow
@pytest.mark.parametrize("name", STDIO)
def test_the_manifest_is_true_of_the_server(listing: Listing, name: str) -> None:
    server, tools = SERVERS[name], {tool.name: tool for tool in tools_of(listing, name)}
    assert {tool: tool_effect(server, tools[tool]) for tool in expected(name) if tool in tools} == expected(name)
    milder = {
        tool for tool, effect in expected(name).items() if not at_most(stated_effect(tools[tool].annotations), effect)
    }
    assert milder <= MILDER_THAN_ANNOTATED.keys()
    for tool, conditions in [*server.destructive_when.items(), *server.deny.items()]:
        assert conditions.keys() <= tools[tool].inputSchema["properties"].keys(), tool


PLAIN = "index=main error | stats count by host"
SECRETS = ("Secret", "secret", "Secrets", "v1/Secret", " secret ", "secrets.v1")


@pytest.mark.parametrize(
    ("agent", "server", "tool", "args", "verdict"),
    [
        ("argocd", "argocd", "sync_application", {"applicationName": "a", "prune": False}, "write"),
        ("argocd", "argocd", "sync_application", {"applicationName": "a", "prune": True}, "destructive"),
        ("argocd", "argocd", "sync_application", {"syncOptions": ["CreateNamespace=true"]}, "write"),
        ("argocd", "argocd", "sync_application", {"syncOptions": ["Validate=true", "Replace=true"]}, "destructive"),
        ("argocd", "argocd", "sync_application", {"revision": "4f2c"}, "destructive"),
        ("aws", "eks", "manage_k8s_resource", {"operation": "read", "kind": "Pod"}, "called"),
        ("aws", "eks", "manage_k8s_resource", {"operation": "delete", "kind": "Pod"}, "destructive"),
        *(("aws", "eks", "list_k8s_resources", {"kind": kind}, "refused") for kind in SECRETS),
        ("aws", "eks", "manage_k8s_resource", {"operation": "read", "kind": "Secret"}, "refused"),
        ("github", "github", "issue_write", {"method": "create"}, "write"),
        ("github", "github", "issue_write", {"method": "update"}, "destructive"),
        *(("kubernetes", "kubernetes", "resources_get", {"kind": kind}, "refused") for kind in SECRETS),
        ("kubernetes", "kubernetes", "resources_list", {"apiVersion": "v1/Secret", "kind": ""}, "refused"),
        ("kubernetes", "kubernetes", "resources_get", {"apiVersion": "v1", "kind": "SealedSecret"}, "called"),
        ("splunk", "splunk", "get_field_summary", {"index": "main"}, "called"),
        ("splunk", "splunk", "get_field_summary", {"index": "main | delete"}, "destructive"),
        ("splunk", "splunk", "get_alert_history", {"name": "Errors, 5 min"}, "called"),
        ("splunk", "splunk", "get_alert_history", {"name": 'x" | delete'}, "destructive"),
        *(
            ("splunk", "splunk", "search_splunk", {"query": query}, verdict)
            for verdict, queries in {
                "called": [
                    "error",
                    "delete failed",
                    PLAIN,
                    'index=main "a | delete" | head 5',
                    'search "a \\" | delete" | head',
                    "search x [ search y | fields id ] | eval 'the sum'=1",
                    "| tstats count where index=* by host",
                    "| foreach * [ eval <<FIELD>>=1 ]",
                ],
                "destructive": [
                    f"{PLAIN} | delete",
                    f"{PLAIN}|DELETE",
                    f"{PLAIN} |\n\tcollect index=x",
                    "search x | append [ search y | outputlookup z ]",
                    "search x [| outputcsv z ]",
                    '| makeresults | map search="search x"',
                    "search x | sendemail to=a@b.c",
                    "search x | script python y",
                    "search x | runshellscript y",
                    "search x | mcollect index=m",
                    "search x | tscollect namespace=n",
                    "search x | dump basefilename=f",
                    "search x | unknowncommand",
                    "`a_macro`",
                    "from savedsearch:x",
                    'search "not closed | delete',
                    'search \\" | delete "',
                    "search 'a\" | delete \"'",
                ],
                "refused": ["| rest /services/storage/passwords", "| rest /servicesNS/-/-/Storage%2Fpasswords"],
            }.items()
            for query in queries
        ),
    ],
)
def test_arguments_decide(agent: str, server: str, tool: str, args: dict[str, Any], verdict: str) -> None:
    policy = ApprovalPolicy.of(load_settings({}, env_file=None), MANIFESTS[agent], sandboxed=False)
    entry = SERVERS[f"{agent}.{server}"]
    built = build_tool(agent, entry, Tool(name=tool, inputSchema={"type": "object"}), ToolNames(tool, tool), not_called)
    match policy.judge(built, args):
        case ApprovalRequired(effect):
            assert effect == verdict
        case CallRefused():
            assert verdict == "refused"
        case _:
            assert verdict == "called"


async def not_called(_tool: str, _arguments: dict[str, Any]) -> str:
    raise AssertionError
