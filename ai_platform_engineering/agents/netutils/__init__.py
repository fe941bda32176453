"""The network tools: an MCP server of our own, because checks of names, ports and certificates need no backend.

`server.py` offers the tools; the other modules do one kind of check each. Which addresses may be reached is decided
in `targets.py` and nowhere else.
"""
