"""The scenario's tool on an MCP server of its own: `python -m benchmarks.tool_server stdio|http`."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("FASTMCP_LOG_ENABLED", "false")

from ai_platform_engineering.serving import listen, run
from benchmarks.scenario import server


def main(transport: str) -> int:
    if transport == "stdio":
        server.run("stdio", show_banner=False)
        return 0
    listener = listen("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    return run(server.http_app(path="/mcp"), listener, lambda: print(address, flush=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
