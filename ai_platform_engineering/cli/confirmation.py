"""Asks before something is deleted."""

from __future__ import annotations


def confirmed(prompt: str) -> bool:
    try:
        return input(prompt).strip().lower() in {"y", "yes"}
    except EOFError:
        return False
