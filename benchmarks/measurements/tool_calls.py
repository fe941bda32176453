"""What one call of a tool costs over each MCP transport, its server's own work included."""

from __future__ import annotations

from benchmarks.effort import Effort, compared
from benchmarks.rows import Row
from benchmarks.subjects import together, tool

_LABELS = {
    "memory": "in memory",
    "stdio": "stdio, with the server's process",
    "http": "HTTP, with the server's process",
}


def tool_calls(effort: Effort) -> list[Row]:
    with together({transport: tool(transport) for transport in _LABELS}) as subjects:
        found = compared(subjects, effort.rounds, effort.calls)
    return [
        Row(f"tool.{transport}", f"CPU per tool call: {label}", found[transport].cpu_ms, "ms")
        for transport, label in _LABELS.items()
    ]
