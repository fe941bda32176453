"""What can be wrong with workflows as a whole. On its own, so that catching it costs no import."""

from __future__ import annotations


class WorkflowError(Exception):
    """A workflow cannot be used. The text names the file, the key and what is allowed."""
