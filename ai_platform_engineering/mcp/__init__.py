"""MCP servers and their tools: long-lived sessions, and tools that survive a restart of their server.

`McpServers` is the entry point. An agent's manifest lists its servers. The callers of tools limit, store and display
the results.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ai_platform_engineering.mcp.errors import McpUnavailable
    from ai_platform_engineering.mcp.servers import McpServers

__all__ = ["McpServers", "McpUnavailable"]


def __getattr__(name: str) -> Any:
    # Imported on first use: a process that only serves tools does not need LangChain.
    if name in __all__:
        module = "servers" if name == "McpServers" else "errors"
        return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
