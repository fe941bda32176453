"""The supervisor over A2A: the binding (graph to events), the executor (events to tasks), the app (HTTP).

Parts shared with the server of a single agent are in `utils/a2a_common`.
"""
