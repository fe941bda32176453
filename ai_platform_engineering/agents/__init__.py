"""The domain agents: one folder each, holding the manifest `agent.yaml` that says all there is to say about it.

`manifest.py` reads them. Where no good public MCP server exists an agent brings its own `server.py`. Which agents
are enabled, and where each one runs, is decided in `multi_agents`.
"""
