"""The section about requests to a model provider over HTTP in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.markdown import cell
from benchmarks.measurements.provider_memory import AGENT
from benchmarks.provider.subjects import LABELS
from benchmarks.rows import Row, by_name
from benchmarks.scenario import ANSWER_WORDS, MODEL_CALLS

_SECTION: Final = """\
## With a model provider over HTTP

![CPU per request, requests per second and memory per open stream by number of streams; start](performance-provider.svg)

A request as in production: the model is behind the OpenAI API on a server of its own, which streams its answers in
chunks. The plain graph is `create_deep_agent` with `ChatOpenAI`, called in its own process: it has no server and keeps
conversations in memory. The product has `LLM_PROVIDER=openai` and its defaults: an A2A server, events and conversations
in files; its agent runs in the supervisor's process or, where it says *remote*, in a process of its own. All three
ran side by side and took turns. Each makes {calls} model calls for a request.

{table}

{start}

- In brackets: the value compared with the plain graph; for CPU, the median of the ratios of all rounds. The aim for a
  model call of the product is 0.6x or less with 1, 8 and 32 streams.
- CPU is that of all processes of a subject. The CPU of the model's server and of the client that sends the requests is
  not counted. All of them share the cores of the machine.
- What limits requests/s: a process runs Python on one core, so a subject whose busiest process is near 100 % has
  reached its own limit. Below that, the pace of the model limits it, or other work on the machine: texts have {words}
  chunks, the arguments of tool calls one for four characters, and a chunk comes every 5 ms. The model's server limits
  nothing while it is well below 100 %.
- Memory per open stream is the resident memory with that many streams open, minus that with none, divided by their
  number. Each stream waits for the first answer of its agent's model. Median of three runs.
- Start to ready ends when the plain graph can be called, and when the product accepts requests.

{run}
"""
MEASURES: Final = {
    "call": "CPU per model call",
    "request": "CPU per request",
    "throughput": "Requests per second",
    "busiest": "Busiest process, of one core",
    "server": "Model's server, of one core",
    "memory": "Memory per open stream",
}
_START: Final = {"start": "Start to ready", "rest": "Resident with no open stream"}
_AGENT_LABEL: Final = "… of which the agent's process"


def sizes(rows: Sequence[Row]) -> list[int]:
    """The numbers of streams that were measured."""
    return sorted({int(part) for row in rows if (part := row.name.split(".")[1]).isdigit()})


def section(rows: Sequence[Row], run: str) -> str:
    return _SECTION.format(calls=MODEL_CALLS, words=ANSWER_WORDS, table=_growth(rows), start=_start(rows), run=run)


def _growth(rows: Sequence[Row]) -> str:
    found, counts = by_name(rows), sizes(rows)
    heads = [f"{count} stream{'s' if count > 1 else ''}" for count in counts]
    lines = [f"| | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(counts)}"]
    for measure, title in MEASURES.items():
        lines.append(f"| **{title}** |{' |' * len(counts)}")
        for subject, label in {**LABELS, AGENT: _AGENT_LABEL}.items():
            cells = [_cell(found, f"provider.{count}.{subject}.{measure}") for count in counts]
            if any(cells):
                lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _start(rows: Sequence[Row]) -> str:
    found = by_name(rows)
    lines = [f"| | {' | '.join(LABELS.values())} |", f"| --- |{' ---: |' * len(LABELS)}"]
    for measure, title in _START.items():
        cells = [_cell(found, f"provider.{measure}.{subject}") for subject in LABELS]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(found: Mapping[str, Row], name: str) -> str:
    return cell(found.get(name), ratio=".bare" not in name)
