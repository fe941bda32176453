"""The scenario's tool on an MCP server of its own: `python -m benchmarks.tool_server stdio|http`."""

from __future__ import annotations

import asyncio
import sys

from ai_platform_engineering.mcp.protocol import http_app, serve_stdio
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.connection_limits import ConnectionLimits
from ai_platform_engineering.utils.serving import listen, run
from benchmarks.scenario import server


def main() -> int:
    if sys.argv[1] == "stdio":
        asyncio.run(serve_stdio(server))
        return 0
    listener = listen("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    limits = ConnectionLimits.of(load_settings(env_file=None))
    return run(http_app(server, "/mcp"), listener, lambda: print(address, flush=True), limits)


if __name__ == "__main__":
    sys.exit(main())
