"""Incremental parsing of streamed Markdown: code fences, tables, mentions, and points where it may be split.

Nothing here knows Slack messages or their limits.
"""
