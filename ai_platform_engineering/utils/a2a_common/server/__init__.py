"""The server side of A2A: JSON-RPC and REST of both protocol versions, authentication, and the way from a request to a
run and its end: request handler, executor, recorder, upkeep of the event log.

Graphs and events come from `runs` and `graphs`; what a request gives back is read from the event log.
"""
