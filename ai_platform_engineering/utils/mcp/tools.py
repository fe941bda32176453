"""LangChain tools made from MCP tool descriptions. They hold no session, so they outlive the server's restarts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from langchain_core.tools import BaseTool
from mcp.types import Tool
from pydantic import PrivateAttr

from ai_platform_engineering.agents.manifest import McpServer

logger = logging.getLogger(__name__)

Invoke = Callable[[str, dict[str, Any]], Awaitable[str]]
"""Runs the tool with that name on its server, with those arguments."""


class McpTool(BaseTool):
    """A tool of an MCP server. Arguments go to the server as they are; the server validates them."""

    _mcp_name: str = PrivateAttr()
    _invoke: Invoke = PrivateAttr()

    def __init__(self, mcp_name: str, invoke: Invoke, **fields: Any) -> None:
        super().__init__(**fields)
        self._mcp_name = mcp_name
        self._invoke = invoke

    def _run(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{self.name} can only be called asynchronously: use ainvoke")

    # Positional-only and without named parameters, so that a tool may have arguments called `self` or `config`.
    async def _arun(self, /, *args: Any, **kwargs: Any) -> str:
        return await self._invoke(self._mcp_name, kwargs)


def build_tool(agent: str, server: McpServer, tool: Tool, name: str, invoke: Invoke) -> McpTool:
    read_only, destructive = effects(server, tool)
    return McpTool(
        mcp_name=tool.name,
        invoke=invoke,
        name=name,
        description=tool.description or tool.title or tool.name,
        # Some servers leave out `properties` where there are none; LangChain and some models insist on it.
        args_schema={"type": "object", "properties": {}} | tool.inputSchema,
        metadata={
            "agent": agent,
            "server": server.name,
            "tool": tool.name,
            "read_only": read_only,
            "destructive": destructive,
        },
    )


def effects(server: McpServer, tool: Tool) -> tuple[bool, bool]:
    """Whether the tool only reads, and whether it destroys.

    The manifest's word counts first, then the server's. Where both are silent, the tool only reads if the manifest
    has marked others of this server: then somebody has gone through them.
    """
    hints = tool.annotations
    reads_by_hint = hints.readOnlyHint if hints else None
    destructive = tool.name in server.destructive or (
        bool(hints and hints.destructiveHint) and reads_by_hint is not True
    )
    if destructive or tool.name in server.writes:
        return False, destructive
    if reads_by_hint is not None:
        return reads_by_hint, False
    return bool(server.writes or server.destructive), False


def allowed(server: McpServer, tools: Sequence[Tool]) -> list[Tool]:
    """The tools the manifest lets the agent use, in the server's order."""
    return [tool for tool in tools if server.tools is None or tool.name in server.tools]


def warn_about_unknown_names(agent: str, server: McpServer, tools: Sequence[Tool]) -> None:
    """A misspelt name would quietly take a tool away, or the mark from one that destroys."""
    known = [tool.name for tool in tools]
    marks = {
        "writes": server.writes,
        "destructive": server.destructive,
        "approvals": tuple(server.approvals),
        "local_files": tuple(server.local_files),
        "confirm_empty": (*server.confirm_empty, *(check.tool for check in server.confirm_empty.values())),
    }
    for key, names in {"tools": server.tools or (), **marks}.items():
        for name in names:
            if name not in known:
                nearest = get_close_matches(name, known, n=1)
                hint = f"; did you mean {nearest[0]}?" if nearest else ""
                logger.warning(
                    "%s: %r of the %s server names %s, a tool it has not%s", agent, key, server.name, name, hint
                )


def unique_name(tool: str, server: str, taken: Collection[str]) -> str | None:
    """The tool's own name, or with the server's name before it if that is taken; None if both are."""
    return next((name for name in (tool, f"{server}_{tool}") if name not in taken), None)
