"""Memories in the supervisor: tools and a prompt section for its model (`notes.py`), HTTP routes (`routes.py`).

The store is in `storage/memories`.
"""
