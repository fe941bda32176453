"""What the supervisor and every agent are built from: protocol, models, MCP sessions, graphs, logs.

Nothing here knows which agents exist or which of them are remote.
"""
