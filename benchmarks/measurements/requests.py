"""What one request costs, and when its first words come, by where its agent runs and where its events are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from benchmarks.effort import Effort, in_turns
from benchmarks.rows import Row
from benchmarks.samples import Sample, bests, middle_ratio
from benchmarks.subjects import IN_MEMORY, LOG_IN_FILE, Subject, bare, graph, product, together

_LIVES: Final = 3
"""How often everything is started: where a process has its memory makes some a twentieth faster than others."""


def requests(effort: Effort) -> list[Row]:
    # Short rounds and many: what the machine does beside is then the same for all that take turns.
    requests = max(1, effort.requests // 2)
    rounds: list[dict[str, Sample]] = []
    for _ in range(min(_LIVES, effort.rounds)):
        with together(_wanted()) as subjects:
            rounds += in_turns(subjects, effort.rounds, requests)
    return rows(rounds)


def _wanted() -> dict[str, AbstractContextManager[Subject]]:
    return {
        "bare": bare(),
        "graph": graph(),
        "memory": product(IN_MEMORY),
        "log": product(LOG_IN_FILE),
        "durable": product(),
        "remote": product(IN_MEMORY, remote=True),
        "remote-durable": product(remote=True),
    }


def rows(rounds: Sequence[Mapping[str, Sample]]) -> list[Row]:
    found = bests(rounds)
    yardstick = found["bare"]

    def cpu(name: str, label: str) -> Row:
        milliseconds = found[name].cpu_ms
        return Row(f"cpu.{name}", f"CPU per request: {label}", milliseconds, "ms", milliseconds / yardstick.cpu_ms)

    def first(name: str, label: str) -> list[Row]:
        event, answer = found[name].first_event_ms, found[name].first_answer_ms
        return [
            Row(f"first-event.{name}", f"First event: {label}", event, "ms", event / yardstick.first_event_ms),
            Row(
                f"first-answer.{name}", f"First answer token: {label}", answer, "ms", answer / yardstick.first_answer_ms
            ),
        ]

    def against(key: str, name: str, to: str, label: str) -> list[Row]:
        return [
            Row(key, label, middle_ratio(rounds, name, to), "x"),
            Row(f"{key}.best", "… the best rounds of both", found[name].cpu_ms / found[to].cpu_ms, "x"),
        ]

    return [
        cpu("bare", "plain graph, no server"),
        cpu("graph", "the product's graph, no server"),
        cpu("memory", "product, kept in memory"),
        cpu("log", "product, event log in a file"),
        cpu("durable", "product, log and conversations in files (default)"),
        cpu("remote", "product, agent remote, kept in memory"),
        Row("cpu.remote-agent", "… of which the agent's own process", found["remote"].parts[-1], "ms"),
        cpu("remote-durable", "product, agent remote"),
        *against("against-bare", "memory", "bare", "In memory compared with the plain graph"),
        *against("durable", "durable", "memory", "Files compared with memory"),
        *against("remote", "remote", "memory", "Remote compared with in-process, in memory"),
        *against("remote-as-it-comes", "remote-durable", "durable", "Remote compared with in-process, default storage"),
        *first("bare", "plain graph, no server"),
        *first("durable", "product"),
        *first("remote-durable", "product, agent remote"),
    ]
