"""Slack's Web API: performs operations as API calls, one at a time per run and within Slack's rate limits.

`thread_view` decides the content of a thread.
"""
