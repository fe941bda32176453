"""Markdown as models write it, while they write it: code fences, tables, mentions, and what may be told apart already.

Nothing here knows what a message is, or how long it may be.
"""
