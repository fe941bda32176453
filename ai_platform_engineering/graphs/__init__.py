"""The graphs of the supervisor and of the agents: how they are built, and the middleware that all of them share.

The same code serves the supervisor, agents in its process and agents on their own server. Translating a graph's stream
into events is in `runs/`.
"""
