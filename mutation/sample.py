"""The mutants that a run with a sample tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def sample(mutants: Iterable[str], size: int, seed: int) -> list[str]:
    """Up to `size` of the mutants, evenly over all of them.

    The choice depends on the seed and on the name of the mutant alone, so that a change of one function keeps the
    mutants of all others in the sample, or out of it.
    """

    def rank(mutant: str) -> str:
        return hashlib.sha256(f"{seed} {mutant}".encode()).hexdigest()

    return sorted(sorted(mutants, key=rank)[:size])
