"""How long it takes until the product serves with a model provider configured, compared with the plain graph."""

from __future__ import annotations

from typing import Final

from benchmarks.effort import Effort
from benchmarks.processes import started
from benchmarks.rows import Row
from benchmarks.subjects import provider_settings, served

_STARTS: Final = 5


def start(effort: Effort) -> list[Row]:
    bare_starts: list[float] = []
    starts: list[float] = []
    with started("benchmarks.provider.server") as server:
        for _ in range(min(_STARTS, effort.starts)):
            with started("benchmarks.alone", "bare", f"--provider={server.url}") as process:
                bare_starts.append(process.ready_after)
            with served(provider_settings(server.url)) as process:
                starts.append(process.ready_after)
    return [
        Row("provider.start.bare", "Start to ready: plain graph, one agent, no server", min(bare_starts), "s", 1.0),
        Row(
            "provider.start.product",
            "Start to ready: product, all sandbox agents",
            min(starts),
            "s",
            min(starts) / min(bare_starts),
        ),
    ]
