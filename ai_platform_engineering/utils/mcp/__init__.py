"""MCP servers and their tools: sessions that are opened once and kept, tools that survive a server's restart.

`McpServers` is the way in. Which servers an agent has is said in its manifest, not here; what is done with a tool's
result, how long it may be and who sees it, is decided by whoever calls the tool.
"""

from ai_platform_engineering.utils.mcp.errors import McpUnavailable
from ai_platform_engineering.utils.mcp.servers import McpServers

__all__ = ["McpServers", "McpUnavailable"]
