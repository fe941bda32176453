"""`GET /agents`: every known agent with its placement, state, tools and missing settings. Also the rows of `/tools`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.identity.principal import Principal, caller_in
from ai_platform_engineering.multi_agents.connectivity import ToolRow, remote_tools
from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.rag_tools import KNOWLEDGE_BASE
from ai_platform_engineering.policy.decisions import PrincipalPolicy
from ai_platform_engineering.utils.a2a_common.server.a2a_app import tool_rows
from ai_platform_engineering.utils.access_tokens import AccessTokenError
from ai_platform_engineering.utils.redact import redact

logger = logging.getLogger(__name__)

PATH: Final = "/agents"
_TOOLS_SECONDS: Final = 2.0


def agents_route(supervisor: PlatformEngineerDeepAgent) -> Route:
    async def get(request: Request) -> Response:
        remote = await _remote_tools(supervisor)
        policy = supervisor.policy.of(caller_in(request.scope.get("state")))
        entries = [entry for entry in supervisor.registry.entries if policy.sees("agents", entry.name)]
        rows = [_row(supervisor, entry, remote) for entry in entries]
        for row in rows:
            row["tools"] = _visible(policy, row["name"], row["tools"])
        return JSONResponse({"agents": rows})

    return Route(PATH, get, methods=["GET"])


def _visible(policy: PrincipalPolicy, agent: str, rows: Sequence[ToolRow]) -> list[ToolRow]:
    """The tools of an agent that the policy does not hide."""
    return [row for row in rows if not policy.hides_tool(agent, str(row["name"]), _effect(row))]


def _effect(row: ToolRow) -> Effect:
    return "destructive" if row.get("destructive") else "read" if row.get("read_only") else "write"


async def all_tools(supervisor: PlatformEngineerDeepAgent, caller: Principal) -> list[Mapping[str, Any]]:
    """The tools of all agents that the caller may see. Remote agents are asked now; one that does not answer is left
    out."""
    here = [*(entry.name for entry in supervisor.registry.local()), KNOWLEDGE_BASE]
    local = [row for name in here for row in tool_rows(name, supervisor.mcp)]
    found = await _remote_tools(supervisor)
    if found.problem is not None:
        logger.warning("The tools of remote agents cannot be listed: %s", found.problem)
    rows = [*local, *({**row, "agent": name} for name, rows in found.rows.items() for row in rows or ())]
    policy = supervisor.policy.of(caller)
    return [row for row in rows if policy.sees("agents", row["agent"]) and _visible(policy, row["agent"], [row])]


@dataclass(frozen=True, slots=True)
class _RemoteTools:
    """The tools of each remote agent, None if it did not list them. `problem`: why no agent could be asked."""

    rows: Mapping[str, Sequence[ToolRow] | None]
    problem: str | None = None


async def _remote_tools(supervisor: PlatformEngineerDeepAgent) -> _RemoteTools:
    registry = supervisor.registry
    entries = registry.remote()
    try:
        tokens = {entry.name: await supervisor.bearer.token(entry.name) for entry in entries}
    except AccessTokenError as error:
        return _RemoteTools({}, str(error))
    found = await asyncio.gather(
        *(
            remote_tools(entry, registry.client, timeout=_TOOLS_SECONDS, auth_token=tokens[entry.name])
            for entry in entries
        )
    )
    return _RemoteTools({entry.name: rows for entry, rows in zip(entries, found, strict=True)})


def _row(supervisor: PlatformEngineerDeepAgent, entry: AgentEntry, remote: _RemoteTools) -> dict[str, Any]:
    registry, manifest = supervisor.registry, entry.manifest
    tools: Sequence[ToolRow] = ()
    reachable, problem = None, registry.half_configured.get(entry.name)
    if entry.enabled and entry.where == "in-process":
        tools = tool_rows(entry.name, supervisor.mcp)
        reachable, missing_tools = _local_state(supervisor, entry.name)
        problem = missing_tools or problem
    elif entry.enabled:
        tools = remote.rows.get(entry.name) or ()
        reachable, problem = _remote_state(supervisor, entry.name, remote)
    # The settings of a remote agent belong to its own process.
    missing = manifest.missing(supervisor.settings.environ) if manifest and entry.where == "in-process" else ()
    return {
        "name": entry.name,
        "title": registry.title(entry.name),
        "description": registry.description(entry.name),
        "enabled": entry.enabled,
        "placement": entry.where if entry.enabled else None,
        "why": entry.why,
        "sandbox": entry.sandboxed,
        "reachable": reachable,
        "problem": redact(problem) if problem else None,
        "missing": [
            {"setting": name, "description": manifest.settings.get(name, "") if manifest else ""} for name in missing
        ],
        "examples": list(manifest.examples) if manifest else [],
        "tools": [_tool(row) for row in tools],
    }


def _local_state(supervisor: PlatformEngineerDeepAgent, name: str) -> tuple[bool | None, str | None]:
    """Whether the servers of an in-process agent give it tools, and why not. None while they start."""
    if supervisor.mcp.starting(name):
        return None, supervisor.mcp.problem(name)
    return bool(supervisor.mcp.tools(name)), supervisor.mcp.problem(name)


def _remote_state(
    supervisor: PlatformEngineerDeepAgent, name: str, remote: _RemoteTools
) -> tuple[bool | None, str | None]:
    """Whether a remote agent can be reached, and why not or why it has no tools."""
    rows = remote.rows.get(name)
    if rows is not None:
        return True, None if rows else "It has no tools."
    found = supervisor.registry.reachability.get(name)
    if found is None:
        return None, remote.problem
    # An agent of another product does not list its tools.
    return found.ok, found.reason or remote.problem


def _tool(row: ToolRow) -> dict[str, Any]:
    """A tool without keys and types that only a foreign agent sends."""
    description = row.get("description")
    return {
        "name": str(row["name"]),
        "description": description if isinstance(description, str) else "",
        "read_only": row.get("read_only") is True,
        "destructive": row.get("destructive") is True,
    }
