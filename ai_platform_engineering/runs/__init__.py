"""What a run is made of: the stream of a graph, the calls that are open, the plan, and the events these give.

Pure translation from LangGraph's stream to `events.py`; no sockets, no A2A, no models.
"""
