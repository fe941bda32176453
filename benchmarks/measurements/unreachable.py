"""How long a question takes whose agent cannot be reached: nobody listens there, or somebody who never answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.effort import Effort
from benchmarks.rows import Row
from benchmarks.subjects import product


def unreachable(effort: Effort) -> list[Row]:
    with _address(listening=True) as silent, _address(listening=False) as refusing:
        return [
            Row("unreachable", "Answer about an unreachable agent: it never answers", _seconds(effort, silent), "s"),
            Row("refused", "Answer about an unreachable agent: connection refused", _seconds(effort, refusing), "s"),
        ]


def _seconds(effort: Effort, address: str) -> float:
    environ = {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": address, "SKIP_AGENT_CONNECTIVITY_CHECK": "true"}
    with product(environ=environ) as supervisor:
        return min(1 / supervisor.load(1).per_second for _ in range(min(effort.rounds, 3)))


@contextmanager
def _address(*, listening: bool) -> Iterator[str]:
    """An address that takes connections and never answers, or one that refuses them."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if listening:
            taken.listen(64)
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
