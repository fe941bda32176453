"""Slack's Web API: operations as calls, one at a time per thread and within Slack's limits, and their outcomes.

What a thread should show is decided in `thread_view`.
"""
