"""Checks against the real thing: one cheap call of each backend of an agent, one short question to a model.

What went wrong is a sentence; nothing here raises because a backend or a provider failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from ai_platform_engineering.manifest import McpServer, ToolCheck
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.runs.failures import failure_of, reason_of, short_reason

CHECK_TIMEOUT: Final = 30.0
"""Seconds that one call of a backend, or one answer of a model, may take."""

_QUESTION: Final = "Reply with the word OK and nothing else."


def has_check(servers: Sequence[McpServer]) -> bool:
    return any(server.check for server in servers)


async def backend_problem(mcp: McpServers, agent: str, servers: Sequence[McpServer]) -> str | None:
    """Why the backends of an agent do not answer the calls that its manifest names; None if they do."""
    calls = (_call(mcp, agent, server.name, server.check) for server in servers if server.check)
    problems = await asyncio.gather(*calls)
    return " ".join(filter(None, problems)) or None


async def model_problem(model: BaseChatModel) -> str | None:
    """Why a model does not answer a short question; None if it does."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await model.ainvoke([HumanMessage(_QUESTION)])
    except Exception as error:  # whatever the provider's library raises
        return failure_of(error).sentence
    return None


async def _call(mcp: McpServers, agent: str, server: str, check: ToolCheck) -> str | None:
    identity = {"server": server, "tool": check.tool}
    tool = next((tool for tool in mcp.tools(agent) if identity.items() <= (tool.metadata or {}).items()), None)
    if tool is None:
        # A server without its tools is a problem that `McpServers.problem` names.
        return None
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await tool.ainvoke(dict(check.arguments))
    except Exception as error:  # whatever the tool does
        return f"Its backend did not answer a test call ({check.tool}): {short_reason(reason_of(error))}"
    return None
