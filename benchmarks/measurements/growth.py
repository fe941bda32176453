"""How the cost of a request grows: with the number of agents, and with the length of the conversation it is in."""

from __future__ import annotations

from contextlib import AbstractContextManager

from benchmarks.effort import Effort, compared
from benchmarks.rows import Row
from benchmarks.subjects import Subject, bare, product, together


def agents(effort: Effort) -> list[Row]:
    wanted: dict[tuple[str, int], AbstractContextManager[Subject]] = {}
    for count in effort.agents:
        wanted |= {("bare", count): bare(count), ("product", count): product(agents=count)}
    with together(wanted) as subjects:
        found = compared(subjects, effort.rounds, effort.requests)
    costs = {key: sample.cpu_ms for key, sample in found.items()}
    return [row for count in effort.agents for row in _pair("agents", count, costs)]


def turns(effort: Effort) -> list[Row]:
    wanted: dict[str, AbstractContextManager[Subject]] = {"bare": bare(), "product": product()}
    with together(wanted) as subjects:
        for subject in subjects.values():
            subject.load(effort.requests)
        costs: dict[tuple[str, int], float] = {}
        for number in range(effort.conversations):
            for turn in range(1, max(effort.turns) + 1):
                for name, subject in subjects.items():
                    cpu = subject.load(1, context=f"conversation-{number}").cpu_ms
                    if turn in effort.turns:
                        costs[name, turn] = min(cpu, costs.get((name, turn), cpu))
    return [row for turn in effort.turns for row in _pair("turns", turn, costs)]


def _pair(name: str, size: int, costs: dict[tuple[str, int], float]) -> list[Row]:
    bare_cost, cost = costs["bare", size], costs["product", size]
    where = f"with {size} agents" if name == "agents" else f"in turn {size}"
    return [
        Row(f"{name}.{size}.bare", f"CPU per request {where}: plain graph", bare_cost, "ms", 1.0),
        Row(f"{name}.{size}", f"CPU per request {where}: product", cost, "ms", cost / bare_cost),
    ]
