"""All MCP servers of a process, by agent: start them, list their tools, close them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from langchain_core.tools import BaseTool
from mcp.types import Tool

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp.argument_schemas import NotAnObjectError
from ai_platform_engineering.mcp.backend_errors import is_empty
from ai_platform_engineering.mcp.confinement import isolation_gap
from ai_platform_engineering.mcp.connection import McpCall
from ai_platform_engineering.mcp.names import GRAPH_TOOLS, model_names, unique_name
from ai_platform_engineering.mcp.on_behalf_of import Requester
from ai_platform_engineering.mcp.sessions import SessionOwner
from ai_platform_engineering.mcp.tools import McpTool, ToolNames, allowed, build_tool, unknown_names
from ai_platform_engineering.settings import Settings

logger = logging.getLogger(__name__)

RequesterSource = Callable[[], Requester]
"""Returns on whose behalf a tool is called. It is called once per call, in the caller's context."""

MAX_TOOLS: Final = 128 - len(GRAPH_TOOLS)
"""The maximum number of server tools of an agent. Providers refuse a request with more than 128 tools."""

_NO_SERVERS = "Its manifest names no MCP servers."


class McpServers:
    """The servers of all agents of this process, for one event loop.

    `start` opens the sessions and `aclose` closes them. Tools stay usable while their server restarts.
    `factory_arguments` has, by `module`, the argument of the function that creates a server in this process. The
    default is the settings.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        requester: RequesterSource = Requester,
        factory_arguments: Mapping[str | None, object] = MappingProxyType({}),
    ) -> None:
        self._settings = settings
        self._requester = requester
        self._factory_arguments = factory_arguments
        self._owners: dict[str, list[SessionOwner]] = {}
        self._tools: dict[str, list[McpTool]] = {}
        self._built: dict[tuple[str, str, ToolNames], tuple[Tool, McpTool]] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}
        self._starting: set[str] = set()
        self._callbacks: list[Callable[[str], None]] = []

    async def start(self, specs: Mapping[str, Sequence[McpServer]], *, deadline: float) -> None:
        """Start the servers of these agents concurrently and wait for them, at most `deadline` seconds.

        A slower server continues to start in the background. May be called again for other agents.
        """
        if repeated := sorted(specs.keys() & self._owners.keys()):
            raise ValueError(f"the servers of {', '.join(repeated)} have been started already")
        if any(server.transport == "stdio" for servers in specs.values() for server in servers) and (
            gap := isolation_gap(self._settings)
        ):
            logger.warning("%s", gap)
        self._starting |= specs.keys()
        started: list[SessionOwner] = []
        for agent, servers in specs.items():
            on_tools = partial(self._rebuild, agent)
            self._owners[agent] = [self._owner(agent, server, on_tools) for server in servers]
            self._tools[agent] = []
            started += self._owners[agent]
        for owner in started:
            owner.start()
        try:
            async with asyncio.timeout(deadline):
                await asyncio.gather(*(owner.start_attempted.wait() for owner in started))
        except TimeoutError:
            for owner in started:
                if not owner.start_attempted.is_set():
                    logger.warning("%s starts without one of its servers: %s", owner.agent, owner.problem)
        finally:
            self._starting -= specs.keys()

    def tools(self, agent: str) -> list[BaseTool]:
        """The agent's tools, the same objects until the list changes. Empty if none of its servers has started."""
        return list(self._tools.get(agent, ()))

    def problem(self, agent: str) -> str | None:
        """Why tools of the agent are missing or unusable, for people; None if all its servers are up."""
        owners = self._owners.get(agent)
        if owners is None:
            return None
        problems = [problem for owner in owners if (problem := owner.problem)]
        if not problems and not self._tools[agent]:
            problems = ["Its servers offer none of the tools that its manifest allows." if owners else _NO_SERVERS]
        return " ".join(problems) or None

    def starting(self, agent: str) -> bool:
        """Whether tools of the agent may still appear: a server is starting or downloading, and none has failed."""
        unusable = [owner for owner in self._owners.get(agent, ()) if owner.down_reason is not None]
        return bool(unusable) and all(owner.starting for owner in unusable)

    def warnings(self, agent: str) -> tuple[str, ...]:
        """Warnings for operators about the agent's tools: renamed, left out, or misspelt in the manifest."""
        return self._warnings.get(agent, ())

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the agent's name after each change of its list of tools, once `start` has returned."""
        self._callbacks.append(callback)

    async def aclose(self) -> None:
        """Close all sessions and wait for the end of all processes. Calls in flight end with `McpUnavailable`."""
        await asyncio.gather(*(owner.aclose() for owners in self._owners.values() for owner in owners))

    def _owner(self, agent: str, server: McpServer, on_tools: Callable[[], None]) -> SessionOwner:
        factory_argument = self._factory_arguments.get(server.module, self._settings)
        return SessionOwner(agent, server, self._settings, on_tools, factory_argument)

    def _rebuild(self, agent: str) -> None:
        before = self._tools[agent]
        self._tools[agent] = self._list(agent)
        if agent in self._starting or self._tools[agent] == before:
            return
        for callback in self._callbacks:
            try:
                callback(agent)
            except Exception:
                logger.exception("A callback for changed tools of %s failed", agent)

    def _list(self, agent: str) -> list[McpTool]:
        named, warnings = self._named(agent)
        models = model_names({name: owner.server.name for name, (owner, _) in named.items()})
        tools: list[McpTool] = []
        for name, (owner, tool) in named.items():
            try:
                tools.append(self._tool(owner, tool, ToolNames(name, models[name])))
            except NotAnObjectError:
                warnings.append(
                    f"{name} of the {owner.server.name} server is left out: its arguments are not an object"
                )
        changed = [f"{name} as {models[name]}" for name in named if models[name] != name]
        if changed:
            warnings.append(f"the model sees {', '.join(changed)}, as providers refuse the original names")
        for warning in warnings:
            if warning not in self._warnings.get(agent, ()):
                logger.warning("%s: %s", agent, warning)
        self._warnings[agent] = tuple(warnings)
        return tools

    def _named(self, agent: str) -> tuple[dict[str, tuple[SessionOwner, Tool]], list[str]]:
        """The agent's tools by name, at most `MAX_TOOLS`, and warnings about the others."""
        named: dict[str, tuple[SessionOwner, Tool]] = {}
        warnings: list[str] = []
        for owner in self._owners[agent]:
            server = owner.server
            if owner.tools:
                warnings += unknown_names(server, owner.tools)
            for tool in allowed(server, owner.tools):
                name = unique_name(tool.name, server.name, {*named, *GRAPH_TOOLS})
                if name is None:
                    warnings.append(f"{tool.name} of the {server.name} server is left out, its name is taken")
                    continue
                if name != tool.name:
                    warnings.append(f"{tool.name} of the {server.name} server is called {name} here")
                named[name] = (owner, tool)
        if len(named) > MAX_TOOLS:
            left_out = [*named][MAX_TOOLS:]
            warnings.append(
                f"{len(left_out)} of {len(named)} tools are left out, as models accept no more than {MAX_TOOLS} "
                f"({left_out[0]} is the first): name the ones it needs under 'tools' in the manifest"
            )
        return dict([*named.items()][:MAX_TOOLS]), warnings

    def _tool(self, owner: SessionOwner, tool: Tool, names: ToolNames) -> McpTool:
        """The same object as before if the description of the tool is unchanged."""
        key = (owner.agent, owner.server.name, names)
        description, built = self._built.get(key, (None, None))
        if built is None or description != tool:
            built = build_tool(owner.agent, owner.server, tool, names, partial(self._call, owner))
            self._built[key] = (tool, built)
        return built

    async def _call(self, owner: SessionOwner, tool: str, arguments: dict[str, Any]) -> str:
        headers = await owner.user_headers(tool, self._requester)
        text = await owner.call(McpCall(tool, arguments, headers))
        check = owner.server.confirm_empty.get(tool)
        if check is not None and is_empty(text):
            same = {name: arguments[name] for name in check.same if name in arguments}
            await owner.call(McpCall(check.tool, {**check.arguments, **same}, headers))
        return text
