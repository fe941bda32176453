"""How long it takes until the product serves, as a person gets it who has configured nothing, and how large it is."""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.processes import started
from benchmarks.rows import Row
from benchmarks.subjects import Served, served


def start_up(effort: Effort) -> list[Row]:
    bare_starts: list[float] = []
    starts: list[float] = []
    rest: list[float] = []
    questions = effort.requests * effort.rounds
    for number in range(1, effort.starts + 1):
        with started("benchmarks.alone", "bare") as process:
            bare_starts.append(process.ready_after)
            bare_rest = process.resident_mb()
        with served({"OFFLINE_MODEL_DELAY": "0"}) as process:
            starts.append(process.ready_after)
            rest.append(process.resident_mb())
            if number == effort.starts:
                Served(process).load(questions)
                used = process.resident_mb()
    return [
        Row("start.bare", "Start to ready: plain graph, one agent, no server", min(bare_starts), "s", 1.0),
        Row("start", "Start to ready: product, all sandbox agents", min(starts), "s", min(starts) / min(bare_starts)),
        Row("memory.rest.bare", "Resident at rest: plain graph", bare_rest, "MB", 1.0),
        Row("memory.rest", "Resident at rest: product, all sandbox agents", min(rest), "MB", min(rest) / bare_rest),
        Row("memory.used", f"Resident after {questions} questions: product", used, "MB", used / bare_rest),
    ]
