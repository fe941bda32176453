"""The network tools: an MCP server without a backend, which checks names, ports, certificates and web addresses.

`server.py` offers the tools; each other module does one kind of check. Only `targets.py` decides which addresses may
be contacted.
"""
