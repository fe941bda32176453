"""How much is done for a request, in calls of functions: a number that is the same on every machine, however busy."""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.rows import Row
from benchmarks.subjects import IN_MEMORY, Served, product, together


def work(effort: Effort) -> list[Row]:
    wanted = {
        "memory": product(IN_MEMORY, options=["--counted"]),
        "remote": product(IN_MEMORY, remote=True, options=["--counted"]),
    }
    with together(wanted) as subjects:
        calls = {name: _calls(subject, effort.requests) for name, subject in subjects.items()}
    return [
        Row("calls.memory", "Function calls per request: product, kept in memory", calls["memory"], "calls"),
        Row("calls.remote", "Function calls per request: product, agent remote", calls["remote"], "calls"),
        Row("work", "Remote compared with in-process, in function calls", calls["remote"] / calls["memory"], "x"),
    ]


def _calls(subject: Served, requests: int) -> float:
    processes = [subject.process, *subject.others]
    subject.load(requests)
    for process in processes:
        process.calls()
    subject.load(requests)
    return sum(process.calls() for process in processes) / requests
