"""Feedback: users' ratings of answers, stored in a file or in Postgres and forwarded to Langfuse.

The buttons for rating an answer are part of each surface.
"""
