"""The built-in domain agents: one folder each, with the agent's manifest `agent.yaml`.

`manifest.py` loads the manifests. An agent has a `server.py` of its own if no good public MCP server exists.
`multi_agents` decides which agents are enabled and where each one runs.
"""
