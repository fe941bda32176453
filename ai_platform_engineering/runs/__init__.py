"""Translates a graph's stream into the events of a run: open calls, plan, open forms, failures, outcomes.

Pure functions and values from LangGraph's stream to `events.py`; no sockets, no A2A, no models.
"""
