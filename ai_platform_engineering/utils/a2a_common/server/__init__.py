"""The server side of A2A: JSON-RPC and REST of both protocol versions, authentication, request handler, work queue,
executor, recorder, and the maintenance of the event log.

Graphs and runs are in `graphs` and `runs`. Responses are read from the event log.
"""
