"""docs/performance.md and its plots, from the rows of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.knowledge.plot import svg as knowledge_svg
from benchmarks.knowledge.section import section
from benchmarks.machine import Machine
from benchmarks.plot import svg
from benchmarks.processes import ROOT
from benchmarks.provider.section import section as provider_section
from benchmarks.rows import Row, by_subject
from benchmarks.skills.section import section as skills_section

_PAGE: Final = """\
# Performance

What a request costs, beside the graph that `deepagents.create_deep_agent` makes as it comes: without a server, with
the same scripted model, one agent and one tool. Both were measured in the same run, taking turns. This page is
written by `python -m benchmarks --write-docs`; for numbers of your own machine:

```bash
make bench
```

{provider}
## With the model in the process

![CPU per request by part, and how it grows](performance.svg)

| What | Value | Against bare | Aim | |
| --- | ---: | ---: | --- | --- |
{table}

## How to read it

- The request: "show argocd version", five turns of the model (the supervisor plans, delegates and answers; the agent
  calls its tool and reports). The model answers at once, so everything that is measured is the product's own work.
- CPU is user and system time of every process that the request goes through, the best of several rounds. It does not
  depend on what else the machine does, as far as anything is; seconds and requests per second do, and are the best
  that were seen.
- *Function calls* are counted by Python's profiler, in all processes that a request goes through: how much is done,
  which no other work on the machine changes. CPU grows by more than that where a second process takes part.
- What is said of one way *against* another is the ratio within each round, in which all have their turn one after the
  other, and of all rounds the middle one: what the machine does beside falls on both. The ratio of the best rounds
  depends on luck where the machine is busy, and stands beside it.
- *In memory* is `EVENT_LOG=memory` and `CONVERSATIONS=memory`; the bare graph keeps its conversations in memory too.
  *As it comes* keeps both in files, so that nothing is shown that is not kept.
- *Against bare* divides by the same number of the bare graph. For requests per second more is better, for all else
  less.
- The prompt is everything that the models of one question are sent, messages and tool schemas as JSON, with the
  sandbox's agents on; the bare graph was given the same agents and tools.
- One event costs what the same answer costs more when every word is an event of its own.
- An idle stream is a request that waits for its model, or a further subscription to one.
- *In Slack* is the bot in a process of its own, with 30 people who ask at once; what the supervisor tells is prepared.
  Slack is a stand-in on the same machine that keeps Slack's limits: the way to Slack comes on top.

{skills}
{knowledge}
## Own code in place of a library

Measured on 2026-11-17 by putting the library's own way in its place. Function calls are those of a request with the
model provider over HTTP; they do not depend on the load of the machine.

| Own code | In place of | Saves | |
| --- | --- | --- | --- |
| `joined_hooks` | LangChain's middlewares one by one | 9 % of the function calls of a request; of the CPU 2 % with 1 \
stream, 11 % with 8 | kept |
| `own_transport`, `stream_json` | the client of a2a-sdk | with a remote agent 6 % of the function calls of the \
supervisor's process, 4 % with the agent's; of the CPU 1 % with 1 stream, 6 % with 8 | kept, at the limit of 5 % |
| `streamable_http` | the client of the MCP SDK | 21 % of the CPU of a tool call over HTTP, with the server's process; \
about 1 % of a request | kept for the call |
| `tool_server` | FastMCP in memory | 66 % of the CPU of a tool call in memory, under 1 % of a request; 0.6 s of CPU \
at every start, for which FastMCP is imported | kept for the start |

## The machine

{processor}, {cores} cores, {memory:.0f} GB, {system}, Python {python}.
{libraries}. Run of {date}. {load}
"""

_VERDICTS: Final = {True: "met", False: "**not met**", None: ""}


def page(rows: Sequence[Row], machine: Machine) -> str:
    provider, requests, knowledge, skills = by_subject(rows)
    table = "\n".join(
        f"| {row.label} | {row.shown_value} | {row.shown_ratio} | {row.shown_aim} | {_VERDICTS[row.met]} |"
        for row in requests
    )
    return _PAGE.format(
        table=table,
        provider=provider_section(provider),
        skills=skills_section(skills),
        knowledge=section(knowledge),
        processor=machine.processor,
        cores=machine.cores,
        memory=machine.memory_gb,
        system=machine.system,
        python=machine.python,
        libraries=machine.libraries,
        date=machine.date,
        load=_load(machine),
    )


def _load(machine: Machine) -> str:
    after = "" if machine.load_after is None else f", {machine.load_after:.1f} after it"
    return f"Other work was going on: the load was {machine.load_before:.1f} before it{after}."


def write_docs(rows: Sequence[Row], machine: Machine) -> None:
    docs = ROOT / "docs"
    (docs / "performance.md").write_text(page(rows, machine), encoding="utf-8")
    (docs / "performance.svg").write_text(svg(rows), encoding="utf-8")
    (docs / "performance-knowledge.svg").write_text(knowledge_svg(rows), encoding="utf-8")
