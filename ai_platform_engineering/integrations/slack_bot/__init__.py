"""The supervisor in Slack: one pure reducer from a run's events to Slack operations, and a thin layer that does them.

What Slack wants (methods, limits, Block Kit) is known here and nowhere else; what a run is, is told by its events.
"""
