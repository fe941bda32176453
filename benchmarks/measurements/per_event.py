"""What one event costs on its way from the graph to the client: encoded, kept, sent.

The same long answer is told once in as many events as it has words, and once in few.
"""

from __future__ import annotations

from benchmarks.effort import Effort, compared
from benchmarks.rows import Row
from benchmarks.samples import cost_of_one
from benchmarks.subjects import AS_IT_COMES, IN_MEMORY, product, together

_STORAGE = {"memory": IN_MEMORY, "durable": AS_IT_COMES}
_LABELS = {"memory": "kept in memory", "durable": "default storage"}
_INTERVALS = {"many": "0", "few": "1000"}


def per_event(effort: Effort) -> list[Row]:
    # With a pause of more than 5 ms before each word, the event log commits each by itself.
    options = [f"--words={effort.words}", "--delay=0.006"]
    wanted = {
        (storage, count): product(_STORAGE[storage], options=options, environ={"TEXT_COALESCE_MS": interval})
        for storage in _STORAGE
        for count, interval in _INTERVALS.items()
    }
    with together(wanted) as subjects:
        found = compared(subjects, effort.rounds, max(1, effort.requests // 5))
    return [
        Row(
            f"event.{storage}",
            f"CPU per event: {_LABELS[storage]}",
            cost_of_one(found[storage, "many"], found[storage, "few"]),
            "ms",
        )
        for storage in _STORAGE
    ]
