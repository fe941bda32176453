"""One module for each thing that is measured: a function from the effort to make to rows.

`EVERYTHING` names them in the order of the report. Starting processes and asking them is in `benchmarks.subjects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from benchmarks.effort import Effort
from benchmarks.measurements.access import access
from benchmarks.measurements.growth import agents, turns
from benchmarks.measurements.idle_streams import idle_streams
from benchmarks.measurements.knowledge import knowledge
from benchmarks.measurements.own_code import own_code
from benchmarks.measurements.per_event import per_event
from benchmarks.measurements.prompts import prompts
from benchmarks.measurements.provider import provider
from benchmarks.measurements.replicas import replicas
from benchmarks.measurements.requests import requests
from benchmarks.measurements.retrieval import retrieval
from benchmarks.measurements.skills import skills
from benchmarks.measurements.slack import slack
from benchmarks.measurements.start_up import start_up
from benchmarks.measurements.stores import stores
from benchmarks.measurements.takeover import takeover
from benchmarks.measurements.throughput import throughput
from benchmarks.measurements.tool_calls import tool_calls
from benchmarks.measurements.unreachable import unreachable
from benchmarks.measurements.work import work
from benchmarks.measurements.workers import workers
from benchmarks.rows import Row

Measurement = Callable[[Effort], list[Row]]

EVERYTHING: Final[Mapping[str, Measurement]] = MappingProxyType(
    {
        "provider": provider,
        "requests": requests,
        "work": work,
        "throughput": throughput,
        "start-up": start_up,
        "prompts": prompts,
        "tool-calls": tool_calls,
        "unreachable": unreachable,
        "per-event": per_event,
        "idle-streams": idle_streams,
        "agents": agents,
        "turns": turns,
        "slack": slack,
        "stores": stores,
        "takeover": takeover,
        "replicas": replicas,
        "workers": workers,
        "access": access,
        "skills": skills,
        "retrieval": retrieval,
        "knowledge": knowledge,
        "own-code": own_code,
    }
)
