"""The supervisor: prompt, plan tool, knowledge base tools, workflows, feedback, and the graph over all agents.

Parts that every agent's graph has are in `graphs`; the HTTP server is in `protocol_bindings`.
"""
