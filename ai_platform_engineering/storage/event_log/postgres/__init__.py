"""The event log in Postgres, which several servers and replicas share.

`writer.py` commits, `listener.py` receives the commits of other processes, `replicas.py` has tasks in memory.
"""
