"""MCP servers and their tools: sessions that are opened once and kept, tools that survive a server's restart.

`McpServers` is the way in. Which servers an agent has is said in its manifest, not here; what is done with a tool's
result, how long it may be and who sees it, is decided by whoever calls the tool.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ai_platform_engineering.mcp.errors import McpUnavailable
    from ai_platform_engineering.mcp.servers import McpServers

__all__ = ["McpServers", "McpUnavailable"]


def __getattr__(name: str) -> Any:
    # When asked for: whoever only offers tools does without LangChain, which those need who call them.
    if name in __all__:
        module = "servers" if name == "McpServers" else "errors"
        return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
