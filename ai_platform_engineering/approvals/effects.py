"""The effect of a tool call: it reads, it writes, or it destroys."""

from __future__ import annotations

from typing import Final, Literal, get_args

Effect = Literal["read", "write", "destructive"]
"""`write` adds or changes something; `destructive` may delete or overwrite. In order of severity."""

EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)


def at_most(effect: Effect, limit: object) -> bool:
    """Whether `effect` is no more severe than `limit`. A limit that is no effect allows nothing."""
    return limit in EFFECTS and EFFECTS.index(effect) <= EFFECTS.index(limit)
