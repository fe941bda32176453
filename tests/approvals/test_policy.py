from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from ai_platform_engineering.graphs.approval_policy import ApprovalPolicy, ApprovalRequired
from ai_platform_engineering.graphs.long_results import LongResults
from ai_platform_engineering.manifest import (
    AgentManifest,
    ManifestError,
    builtin_directory,
    load_manifests,
    read_manifest,
)
from ai_platform_engineering.settings import load_settings
from tests.approvals.tools import Kind, mcp_tool

KINDS: tuple[Kind, ...] = ("reads", "writes", "destroys")


def manifest_of(approval: str | None = None, approvals: dict[str, str] | None = None) -> AgentManifest:
    servers = [
        {"name": "argocd", "transport": "memory", "module": "some.module:server", "approvals": approvals or {}},
        {"name": "other", "transport": "memory", "module": "some.module:server"},
    ]
    values = {"name": "argocd", "description": "d", "prompt": "p", "approval": approval, "servers": servers}
    return AgentManifest.model_validate(values)


def policy_of(
    manifest: AgentManifest | None = None, everywhere: str = "", overrides: str = "", *, sandboxed: bool = False
) -> ApprovalPolicy:
    environ = {"REQUIRE_APPROVAL": everywhere, "REQUIRE_APPROVAL_OVERRIDES": overrides}
    return ApprovalPolicy.of(load_settings(environ, env_file=None), manifest or manifest_of(), sandboxed=sandboxed)


def waits(policy: ApprovalPolicy, tool: BaseTool, **args: Any) -> bool:
    return isinstance(policy.judge(tool, args), ApprovalRequired)


@pytest.mark.parametrize(
    ("level", "needed"),
    [("never", []), ("destructive", ["destroys"]), ("writes", ["writes", "destroys"]), ("always", list(KINDS))],
)
def test_levels(level: str, needed: list[str]) -> None:
    policies = [policy_of(manifest_of(level)), policy_of(overrides=f"argocd={level}")]
    if level != "always":
        policies.append(policy_of(everywhere=level))
    for policy in policies:
        assert [kind for kind in KINDS if waits(policy, mcp_tool("sync", kind))] == needed


def test_where_nothing_is_said_real_backends_ask_for_writes_and_the_sandbox_for_what_destroys() -> None:
    for sandboxed, needed in ((False, ["writes", "destroys"]), (True, ["destroys"])):
        policy = policy_of(sandboxed=sandboxed)
        assert [kind for kind in KINDS if waits(policy, mcp_tool("sync", kind))] == needed
    for level, needed in (("never", []), ("writes", ["writes", "destroys"])):
        policy = policy_of(everywhere=level, sandboxed=True)
        assert [kind for kind in KINDS if waits(policy, mcp_tool("sync", kind))] == needed


@pytest.mark.parametrize(
    ("tool_override", "agent_override", "manifest_tool", "manifest_agent", "everywhere", "level"),
    [
        ("never", "always", "always", "always", "writes", "never"),
        ("destructive", "always", "always", "always", "writes", "destructive"),
        ("always", "never", "never", "never", "never", "always"),
        (None, "never", "always", "always", "writes", "never"),
        (None, "writes", "never", "never", "never", "writes"),
        (None, None, "never", "always", "writes", "never"),
        (None, None, "always", "never", "never", "always"),
        (None, None, None, "never", "writes", "never"),
        (None, None, None, "always", "never", "always"),
        (None, None, None, "destructive", "writes", "destructive"),
        (None, None, None, None, "writes", "writes"),
        (None, None, None, None, "never", "never"),
        (None, None, None, None, "", "writes"),
    ],
)
def test_the_closest_word_counts(
    tool_override: str | None,
    agent_override: str | None,
    manifest_tool: str | None,
    manifest_agent: str | None,
    everywhere: str,
    level: str,
) -> None:
    overrides = {"ARGOCD.sync": tool_override, "Argocd": agent_override}
    said = ", ".join(f"{what}={word}" for what, word in overrides.items() if word)
    manifest = manifest_of(manifest_agent, {"sync": manifest_tool} if manifest_tool else {})
    policy = policy_of(manifest, everywhere, said)
    expected = {"never": 0, "destructive": 1, "writes": 2, "always": 3}[level]
    assert sum(waits(policy, mcp_tool("sync", kind)) for kind in KINDS) == expected


def test_a_word_on_one_tool_is_for_no_other_tool_server_or_agent() -> None:
    policy = policy_of(manifest_of(approvals={"sync": "never"}), "writes", "argocd.drop=never, jira=always")
    assert not waits(policy, mcp_tool("sync", "writes"))
    assert waits(policy, mcp_tool("sync", "writes", server="other"))
    assert not waits(policy, mcp_tool("drop", "destroys"))
    assert waits(policy, mcp_tool("drop_all", "destroys"))
    assert not waits(policy, mcp_tool("list", "reads"))


def test_a_tool_that_had_to_be_renamed_is_found_by_what_its_server_calls_it() -> None:
    renamed = mcp_tool("argocd_sync", "reads")
    renamed.metadata = {**(renamed.metadata or {}), "tool": "sync"}
    assert waits(policy_of(manifest_of(approvals={"sync": "always"})), renamed)
    assert waits(policy_of(overrides="argocd.argocd_sync=always"), renamed)
    assert not waits(policy_of(overrides="argocd.sync=always"), renamed)


def test_tools_of_our_own_never_need_approval() -> None:
    @tool
    async def write_todos() -> str:
        """Plan."""
        return ""

    policy = policy_of(manifest_of("always"), overrides="argocd=always, argocd.write_todos=always")
    assert not waits(policy, write_todos)
    assert not waits(policy, LongResults(100).tools[0])


def test_built_in_agents_leave_the_level_to_the_settings() -> None:
    manifests = load_manifests([builtin_directory()]).values()
    for sandboxed, level in ((False, "writes"), (True, "destructive")):
        assert {policy_of(manifest, sandboxed=sandboxed).default for manifest in manifests} == {level}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (
            "approval: sometimes",
            "approval: 'sometimes' is not allowed; use 'never', 'destructive', 'writes' or 'always'",
        ),
        (
            "servers: [{name: x, transport: memory, module: 'a:b', approvals: {sync: writes}}]",
            "servers.0.approvals.sync: 'writes' is not allowed; use 'always' or 'never'",
        ),
        (
            "servers: [{name: x, transport: memory, module: 'a:b', tools: [list], approvals: {sync: always}}]",
            "'approvals' names sync, which 'tools' does not list",
        ),
    ],
)
def test_wrong_words_in_a_manifest_are_named(tmp_path: Path, lines: str, problem: str) -> None:
    file = tmp_path / "argocd.yaml"
    file.write_text(f"name: argocd\ndescription: d\nprompt: p\n{lines}\n")
    with pytest.raises(ManifestError) as caught:
        read_manifest(file)
    assert problem in str(caught.value)


def test_a_tool_may_ask_if_there_is_a_call_of_it_that_waits() -> None:
    server = {"name": "argocd", "transport": "memory", "module": "some.module:server"}
    conditions = {"prune": {"mode": "hard"}}
    values = {"name": "argocd", "description": "d", "prompt": "p", "approval": "destructive"}
    manifest = AgentManifest.model_validate({**values, "servers": [{**server, "destructive_when": conditions}]})
    policy = policy_of(manifest)
    assert [kind for kind in KINDS if policy.may_ask(mcp_tool("sync", kind))] == ["destroys"]
    assert policy.may_ask(mcp_tool("prune", "writes"))
    assert not policy_of(manifest, overrides="argocd=never").may_ask(mcp_tool("prune", "writes"))
    [own] = LongResults(1000).tools
    assert not policy.may_ask(own)
