"""How LangGraph notes that a run waits for a person."""

from __future__ import annotations

from typing import Final

INTERRUPT: Final = "__interrupt__"
"""The channel of the note, among the writes that are pending after the last state."""
