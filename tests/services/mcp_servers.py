"""The locked MCP servers of built-in agents, installed once per machine."""

from __future__ import annotations

import os
from pathlib import Path

from ai_platform_engineering.manifest import builtin_directory, read_manifest
from ai_platform_engineering.mcp.packages import InstallError, NoRuntimeError, install
from ai_platform_engineering.settings import load_settings
from tests.services.environment import not_here


def installed_servers(*agents: str, partial: bool = False) -> dict[str, str]:
    """The setting with the directory in which the servers of these agents are installed.

    `partial` leaves out those that need a Node.js or Python that is not here.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # Interpreters of pyenv are not in the PATH unless they are chosen.
    path = os.pathsep.join([os.environ["PATH"], *map(str, Path.home().glob(".pyenv/versions/3.12*/bin"))])
    own = {"MCP_SERVERS_DIR": str(cache / "ai-platform-engineering-tests/mcp-servers")}
    settings = load_settings({**os.environ, **own, "PATH": path}, env_file=None)
    for agent in agents:
        try:
            for server in read_manifest(builtin_directory() / agent / "agent.yaml").servers:
                if server.package:
                    install(Path(server.package), settings)
        except InstallError as error:
            if not (partial and isinstance(error, NoRuntimeError)):
                not_here(str(error))
    return own
