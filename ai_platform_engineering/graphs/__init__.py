"""What every agent's graph is built with: the catch-all around tools, the last turn at a limit, the graph itself.

Used alike by the supervisor, by in-process agents and by agents served on their own.
"""
