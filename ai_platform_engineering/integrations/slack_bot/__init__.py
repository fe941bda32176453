"""The supervisor in Slack: a pure reducer turns a run's events into Slack operations, and a thin layer performs them.

Everything specific to Slack (methods, limits, Block Kit) is in this package. It knows runs by their events only.
"""
