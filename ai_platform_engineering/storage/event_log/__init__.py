"""The event log: the numbered events of each task, in memory or in a SQLite file.

A task is the fold of its messages and events. Encoding, serving and maintenance live in `utils/a2a_common`.
"""
