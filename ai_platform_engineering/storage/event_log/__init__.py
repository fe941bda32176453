"""The event log: what happened in each task, numbered and kept, in memory or in a file, and its upkeep.

A task is what its events fold into. Who writes and who reads is not decided here.
"""
