"""LangChain tools made from MCP tool descriptions. They hold no session, so they outlive the server's restarts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from langchain_core.tools import BaseTool
from mcp.types import Tool
from pydantic import PrivateAttr

from ai_platform_engineering.manifest import TOOL_KEYS, McpServer
from ai_platform_engineering.mcp.argument_schemas import argument_schema, combinations
from ai_platform_engineering.mcp.effects import tool_effect

MODEL_NAME: Final = "model_name"
"""Key in a tool's metadata: what the model calls it, where that is not its name."""

Invoke = Callable[[str, dict[str, Any]], Awaitable[str]]
"""Runs the tool with that name on its server, with those arguments."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a tool is called within its agent, by events and forms, and by the model."""

    name: str
    model: str


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


def build_tool(agent: str, server: McpServer, tool: Tool, names: Names, invoke: Invoke) -> McpTool:
    """The tool, with a schema that every provider takes. `NotAnObjectError` if there is no such schema."""
    effect = tool_effect(server, tool)
    about = (tool.description or tool.title or tool.name, combinations(tool.inputSchema))
    return McpTool(
        mcp_name=tool.name,
        invoke=invoke,
        name=names.name,
        description="\n".join(part for part in about if part),
        args_schema=argument_schema(tool.inputSchema),
        metadata={
            "agent": agent,
            "server": server.name,
            "tool": tool.name,
            "read_only": effect == "read",
            "destructive": effect == "destructive",
            **({MODEL_NAME: names.model} if names.model != names.name else {}),
        },
    )


def allowed(server: McpServer, tools: Sequence[Tool]) -> list[Tool]:
    """The tools the manifest lets the agent use, in the server's order."""
    return [tool for tool in tools if server.tools is None or tool.name in server.tools]


def unknown_names(server: McpServer, tools: Sequence[Tool]) -> Iterator[str]:
    """A misspelt name would quietly take a tool away, or what the manifest says about one."""
    known = [tool.name for tool in tools]
    named = {key: tuple(getattr(server, key) or ()) for key in ("tools", *TOOL_KEYS)}
    named["confirm_empty"] += tuple(check.tool for check in server.confirm_empty.values())
    for key, names in named.items():
        for name in names:
            if name not in known:
                nearest = get_close_matches(name, known, n=1)
                hint = f"; did you mean {nearest[0]}?" if nearest else ""
                yield f"{key!r} of the {server.name} server names {name}, a tool it has not{hint}"
