"""Checks of agents: a test call of each backend, a short question to the model, and the offline model's limits.

The functions return a problem as text. They do not raise when a backend or a provider fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from ai_platform_engineering.llm import is_offline
from ai_platform_engineering.manifest import McpServer, ToolCheck
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.runs.failures import failure_of, reason_of, short_reason
from ai_platform_engineering.settings import Settings, SettingsError

CHECK_TIMEOUT: Final = 30.0
"""Seconds for one call of a backend or one answer of a model."""

_QUESTION: Final = "Reply with the word OK and nothing else."


def has_check(servers: Sequence[McpServer]) -> bool:
    return any(server.check for server in servers)


async def backend_problem(mcp: McpServers, agent: str, servers: Sequence[McpServer]) -> str | None:
    """Make the test calls that the agent's manifest declares. None if all backends answer."""
    calls = (_call(mcp, agent, server.name, server.check) for server in servers if server.check)
    problems = await asyncio.gather(*calls)
    return " ".join(filter(None, problems)) or None


async def model_problem(model: BaseChatModel) -> str | None:
    """Ask the model a short question. None if it answers."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await model.ainvoke([HumanMessage(_QUESTION)])
    except Exception as error:  # provider libraries raise many kinds
        return failure_of(error).sentence
    return None


def offline_warning(settings: Settings, entries: Iterable[AgentEntry]) -> str | None:
    """A warning that names the agents that use the offline model on a real backend, or None."""
    names = [entry.name for entry in entries if entry.has_real_backend and _uses_offline_model(settings, entry)]
    if not names:
        return None
    return (
        f"The offline model is used with real backends ({', '.join(names)}). It chooses tools by matching words, so it "
        "can only read there: calls that change something are refused. Set LLM_PROVIDER to use a real model."
    )


async def _call(mcp: McpServers, agent: str, server: str, check: ToolCheck) -> str | None:
    identity = {"server": server, "tool": check.tool}
    tool = next((tool for tool in mcp.tools(agent) if identity.items() <= (tool.metadata or {}).items()), None)
    if tool is None:
        # `McpServers.problem` reports a server without tools.
        return None
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await tool.ainvoke(dict(check.arguments))
    except Exception as error:  # tools may raise anything
        return f"Its backend did not answer a test call ({check.tool}): {short_reason(reason_of(error))}"
    return None


def _uses_offline_model(settings: Settings, entry: AgentEntry) -> bool:
    # An unknown provider is reported when the model is created.
    with suppress(SettingsError):
        return is_offline(settings, entry.name, entry.manifest.model if entry.manifest else None)
    return False
