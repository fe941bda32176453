"""The supervisor over A2A: the binding (graph to events), the executor (events to tasks), the app (HTTP).

What an agent's own server needs as well lives in `utils/a2a_common`.
"""
