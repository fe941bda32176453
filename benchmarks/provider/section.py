"""The section about requests to a model provider over HTTP in docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.measurements.provider import LABELS
from benchmarks.rows import Row, by_name
from benchmarks.scenario import ANSWER_WORDS, MODEL_CALLS

_SECTION: Final = """\
## With a model provider over HTTP

A request as in production: the model is behind the OpenAI API on a server of its own, which streams its answers in
chunks. `create_deep_agent` with `ChatOpenAI` beside the product with `LLM_PROVIDER=openai`, in one run, taking turns.
Both make {calls} model calls for a request. Only the product has a server, events and conversations in files.

{table}

- In brackets: against the bare graph, the middle of the ratios of all rounds. The aim for a model call of the product
  is 0.6x with 1, 8 and 32 streams.
- Texts have {words} chunks, the arguments of tool calls one for four characters; a chunk comes every 5 ms. The CPU
  of the model's server is not counted.
"""
MEASURES: Final = {
    "call": "CPU per model call",
    "request": "CPU per request",
    "throughput": "Requests",
}


def sizes(rows: Sequence[Row]) -> list[int]:
    return sorted({int(row.name.split(".")[1]) for row in rows})


def section(rows: Sequence[Row]) -> str:
    found, counts = by_name(rows), sizes(rows)
    heads = [f"{count} stream{'s' if count > 1 else ''}" for count in counts]
    lines = [f"| | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(counts)}"]
    for measure, title in MEASURES.items():
        for subject, label in LABELS.items():
            cells = [_cell(found[f"provider.{count}.{subject}.{measure}"]) for count in counts]
            lines.append(f"| {title}: {label} | {' | '.join(cells)} |")
    return _SECTION.format(calls=MODEL_CALLS, words=ANSWER_WORDS, table="\n".join(lines))


def _cell(row: Row) -> str:
    ratio = "" if ".bare." in row.name else f" ({row.shown_ratio})"
    verdict = {True: "", False: " **not met**", None: ""}[row.met]
    return f"{row.shown_value}{ratio}{verdict}"
