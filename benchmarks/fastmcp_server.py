"""The scenario's tool on a server of FastMCP, in place of our `ToolServer`."""

from __future__ import annotations

from fastmcp import FastMCP

from benchmarks.scenario import version_service__version

server: FastMCP[None] = FastMCP("argocd")
server.tool(version_service__version)
