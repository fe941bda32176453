"""All MCP servers of a process, by agent: starts them, gives out their tools, closes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.tools import BaseTool
from mcp.types import Tool

from ai_platform_engineering.agents.manifest import McpServer
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.mcp.backend_errors import is_empty
from ai_platform_engineering.utils.mcp.connection import Call
from ai_platform_engineering.utils.mcp.sessions import SessionOwner
from ai_platform_engineering.utils.mcp.tools import McpTool, allowed, build_tool, unique_name, warn_about_unknown_names

logger = logging.getLogger(__name__)

CallMeta = Callable[[], Mapping[str, Any]]
"""What goes with a call as MCP `_meta`; asked for in the caller's context, once per call."""


_NO_SERVERS = "Its manifest names no MCP servers."


class McpServers:
    """The servers of all agents of this process. One object, one event loop.

    Tools stay usable while the server behind them restarts. Sessions are opened by `start` and closed by `aclose`.
    `made_from` has, by `module`, what a server in this process is made from where that is not the settings.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        call_meta: CallMeta | None = None,
        made_from: Mapping[str | None, object] = MappingProxyType({}),
    ) -> None:
        self._settings = settings
        self._call_meta = call_meta
        self._made_from = made_from
        self._owners: dict[str, list[SessionOwner]] = {}
        self._tools: dict[str, list[McpTool]] = {}
        self._built: dict[tuple[str, str, str], tuple[Tool, McpTool]] = {}
        self._starting: set[str] = set()
        self._callbacks: list[Callable[[str], None]] = []

    async def start(self, specs: Mapping[str, Sequence[McpServer]], *, deadline: float) -> None:
        """Starts the servers of these agents side by side and waits for them, `deadline` seconds at most.

        A server that is not up by then goes on starting. May be called again for other agents.
        """
        if repeated := sorted(specs.keys() & self._owners.keys()):
            raise ValueError(f"the servers of {', '.join(repeated)} have been started already")
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
                await asyncio.gather(*(owner.settled.wait() for owner in started))
        except TimeoutError:
            for owner in started:
                if not owner.settled.is_set():
                    logger.warning("%s is without it for now: %s", owner.agent, owner.problem)
        finally:
            self._starting -= specs.keys()

    def tools(self, agent: str) -> list[BaseTool]:
        """The agent's tools; the same objects until their list changes. Empty if none of its servers came up."""
        return list(self._tools.get(agent, ()))

    def problem(self, agent: str) -> str | None:
        """Why tools of the agent are missing or out of use, for people; None when all its servers are up."""
        owners = self._owners.get(agent)
        if owners is None:
            return None
        problems = [problem for owner in owners if (problem := owner.problem)]
        if not problems and not self._tools[agent]:
            problems = ["Its servers offer none of the tools that its manifest allows." if owners else _NO_SERVERS]
        return " ".join(problems) or None

    def starting(self, agent: str) -> bool:
        """Whether the agent's tools may still come: a server of its is starting or downloading, and none has failed."""
        unusable = [owner for owner in self._owners.get(agent, ()) if owner.trouble is not None]
        return bool(unusable) and all(owner.starting for owner in unusable)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """`callback` is called with an agent's name when its list of tools has changed after `start` returned."""
        self._callbacks.append(callback)

    async def aclose(self) -> None:
        """Closes every session and waits until no process is left. Calls in flight end with `McpUnavailable`."""
        await asyncio.gather(*(owner.aclose() for owners in self._owners.values() for owner in owners))

    def _owner(self, agent: str, server: McpServer, on_tools: Callable[[], None]) -> SessionOwner:
        made_from = self._made_from.get(server.module, self._settings)
        return SessionOwner(agent, server, self._settings, on_tools, made_from)

    def _rebuild(self, agent: str) -> None:
        before = self._tools[agent]
        self._tools[agent] = self._list(agent)
        if agent in self._starting or self._tools[agent] == before:
            return
        for callback in self._callbacks:
            try:
                callback(agent)
            except Exception:
                logger.exception("A listener to changes of tools failed for %s", agent)

    def _list(self, agent: str) -> list[McpTool]:
        listed: dict[str, McpTool] = {}
        for owner in self._owners[agent]:
            server = owner.server
            if owner.tools:
                warn_about_unknown_names(agent, server, owner.tools)
            for tool in allowed(server, owner.tools):
                name = unique_name(tool.name, server.name, listed)
                if name is None:
                    logger.warning(
                        "%s: %s of the %s server is left out, its name is taken", agent, tool.name, server.name
                    )
                    continue
                if name != tool.name:
                    logger.warning("%s: %s of the %s server is called %s here", agent, tool.name, server.name, name)
                listed[name] = self._tool(owner, tool, name)
        return list(listed.values())

    def _tool(self, owner: SessionOwner, tool: Tool, name: str) -> McpTool:
        """The tool as built before, if nothing about it has changed."""
        key = (owner.agent, owner.server.name, name)
        described, built = self._built.get(key, (None, None))
        if built is None or described != tool:
            built = build_tool(owner.agent, owner.server, tool, name, partial(self._call, owner))
            self._built[key] = (tool, built)
        return built

    async def _call(self, owner: SessionOwner, tool: str, arguments: dict[str, Any]) -> str:
        meta = self._call_meta() if self._call_meta else {}
        text = await owner.call(Call(tool, arguments, meta))
        check = owner.server.confirm_empty.get(tool)
        if check is not None and is_empty(text):
            same = {name: arguments[name] for name in check.same if name in arguments}
            await owner.call(Call(check.tool, {**check.arguments, **same}, meta))
        return text
