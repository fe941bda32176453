"""LangChain tools for the tools of MCP servers, with their effects. They hold no session and survive restarts.

LangChain evaluates the annotations of `_arun` in each call, so they are types here, not strings.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from mcp.types import Tool, ToolAnnotations
from pydantic import BaseModel, PrivateAttr, RootModel

from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.manifest import TOOL_KEYS, McpServer
from ai_platform_engineering.mcp.argument_schemas import argument_schema, combinations

MODEL_NAME: Final = "model_name"
"""Key in a tool's metadata: its name for the model, if that differs from its own name."""

Invoke = Callable[[str, dict[str, Any]], Awaitable[str]]
"""Runs a tool of the server by name, with these arguments."""


@dataclass(frozen=True, slots=True)
class ToolNames:
    """`name` is the tool's name in its agent, in events and in forms; `model` is its name for the model."""

    name: str
    model: str


class _AnyInput(RootModel[str | dict[str, Any]]):
    """The input of every tool whose arguments have a JSON schema."""


class McpTool(BaseTool):
    """A tool of an MCP server. The arguments are passed on unchanged; the server validates them."""

    _mcp_name: str = PrivateAttr()
    _invoke: Invoke = PrivateAttr()

    def __init__(self, mcp_name: str, invoke: Invoke, **fields: Any) -> None:
        super().__init__(**fields)
        self._mcp_name = mcp_name
        self._invoke = invoke

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        # LangChain's own would build such a model for each tool, which takes half of the time of building a graph.
        return _AnyInput

    def _run(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{self.name} can only be called asynchronously: use ainvoke")

    # Positional-only and without named parameters, so that a tool can have arguments named `self` or `config`.
    async def _arun(self, /, *args: Any, **kwargs: Any) -> str:
        return await self._invoke(self._mcp_name, kwargs)


def build_tool(agent: str, server: McpServer, tool: Tool, names: ToolNames, invoke: Invoke) -> McpTool:
    """The tool with a schema that every provider accepts. Raises `NotAnObjectError` if there is no such schema."""
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
            **({"sends": server.sends[tool.name]} if tool.name in server.sends else {}),
            **({"trusted": True} if tool.name in server.trusted else {}),
        },
    )


def tool_effect(server: McpServer, tool: Tool) -> Effect:
    """The effect of the tool for any arguments. The manifest takes precedence over the server's annotations.

    Some arguments can raise the effect of a call.
    """
    return server.effect(tool.name) or _annotated_effect(tool.annotations)


def _annotated_effect(annotations: ToolAnnotations | None) -> Effect:
    """MCP's defaults: a tool that is not annotated as read-only writes, and is destructive unless annotated."""
    if annotations is not None and annotations.readOnlyHint:
        return "read"
    if annotations is not None and annotations.destructiveHint is False:
        return "write"
    return "destructive"


def allowed(server: McpServer, tools: Sequence[Tool]) -> list[Tool]:
    """The tools that the manifest allows, in the server's order."""
    return [tool for tool in tools if server.tools is None or tool.name in server.tools]


def unknown_names(server: McpServer, tools: Sequence[Tool]) -> Iterator[str]:
    """Warnings about names in the manifest that no tool has. A misspelt name would silently remove a tool or a rule."""
    known = [tool.name for tool in tools]
    named = {key: tuple(getattr(server, key) or ()) for key in ("tools", *TOOL_KEYS)}
    named["confirm_empty"] += tuple(check.tool for check in server.confirm_empty.values())
    for key, names in named.items():
        for name in names:
            if name not in known:
                nearest = get_close_matches(name, known, n=1)
                hint = f"; did you mean {nearest[0]}?" if nearest else ""
                yield f"{key!r} of the {server.name} server names {name}, which is not one of its tools{hint}"
