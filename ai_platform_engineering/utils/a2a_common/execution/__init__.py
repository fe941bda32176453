"""From a request to a run and its end: the SDK's handler over the log, the executor, the recorder, turns of a
conversation. Graphs and events come from `utils/runs` and `utils/graphs`; HTTP is next door.
"""
