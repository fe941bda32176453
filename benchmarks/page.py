"""docs/performance.md and its plots, from the stored results: `python -m benchmarks.page` writes them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.knowledge.plot import svg as knowledge_svg
from benchmarks.knowledge.section import section as knowledge_section
from benchmarks.plot import svg
from benchmarks.processes import ROOT
from benchmarks.provider.plot import svg as provider_svg
from benchmarks.provider.section import section as provider_section
from benchmarks.replacements import section as own_code_section
from benchmarks.results import Results, load_results, machines_of, runs_of
from benchmarks.rows import Row, by_subject
from benchmarks.skills.section import section as skills_section
from benchmarks.stores.section import section as stores_section

_PAGE: Final = """\
# Performance

What a request costs, compared with a plain `create_deep_agent` graph: the graph as deepagents makes it, without a
server, with the same scripted model, one agent and one tool. The product and the plain graph take turns in the same
run. This page is written by `python -m benchmarks --write-docs`; with `--only provider --write-docs` only that part is
measured anew. For numbers of your own machine:

```bash
make bench
```

{provider}
## With the model in the process

![CPU per request by part, and how it grows](performance.svg)

| What | Value | Compared with the plain graph | Aim | |
| --- | ---: | ---: | --- | --- |
{table}

{run}

## How to read it

- The request is "show argocd version". It takes five turns of the model: the supervisor plans, delegates and answers;
  the agent calls its tool and reports. The model answers at once, so the numbers are the product's own work.
- CPU is the user and system time of every process that a request goes through, the best of several rounds. Other work
  on the machine changes it little. It does change seconds and requests per second, which are the best of all rounds.
- Python's profiler counts the *function calls* in all processes that a request goes through. The load of the machine
  does not change that number. CPU grows by more than the function calls where a second process takes part.
- One way *compared with* another is the ratio within a round, in which each way has its turn, and of all rounds the
  median. The line below it has the ratio of the best rounds, which depends more on the load of the machine.
- *In memory* is `EVENT_LOG=memory` and `CONVERSATIONS=memory`; the plain graph keeps its conversations in memory too.
  *Default storage* keeps events and conversations in files.
- For requests per second a higher ratio is better, for all other rows a lower one.
- The prompt is everything that the models receive for one question, messages and tool schemas as JSON, with all
  sandbox agents. The plain graph has the same agents and tools.
- CPU per event is the difference between an answer sent in one event per word and the same answer sent in few events,
  divided by the number of events between them.
- An idle stream is a request that waits for its model, or a further subscription to one.
- *In Slack* is the bot in a process of its own, with 30 people who ask at once and prepared events of the supervisor.
  Slack is a stand-in on the same machine that enforces Slack's limits; the network to Slack is not included.

{stores}{skills}
{knowledge}
{own_code}
## The machine

{machine}
"""

# All other measurements are in the section with the model in the process.
_SECTIONS: Final = {
    "provider": ("provider",),
    "stores": ("stores", "takeover", "replicas", "workers", "access"),
    "skills": ("skills",),
    "knowledge": ("retrieval", "knowledge"),
    "own-code": ("own-code",),
}
_VERDICTS: Final = {True: "met", False: "**not met**", None: ""}


def page(results: Results) -> str:
    provider, requests, stores, knowledge, skills, own_code = by_subject(
        row for result in results.values() for row in result.rows
    )
    table = "\n".join(
        f"| {row.label} | {row.shown_value} | {row.shown_ratio} | {row.shown_aim} | {_VERDICTS[row.met]} |"
        for row in requests
    )
    elsewhere = {name for names in _SECTIONS.values() for name in names}
    runs = {section: runs_of(results, names) for section, names in _SECTIONS.items()}
    return _PAGE.format(
        table=table,
        run=runs_of(results, [name for name in results if name not in elsewhere]),
        provider=provider_section(provider, runs["provider"]),
        stores=stores_section(stores, runs["stores"]),
        skills=skills_section(skills, runs["skills"]),
        knowledge=knowledge_section(knowledge, runs["knowledge"]),
        own_code=own_code_section(own_code, provider, runs["own-code"]),
        machine=machines_of(results),
    )


def write_docs(results: Results) -> None:
    rows = [row for result in results.values() for row in result.rows]
    docs = ROOT / "docs"
    (docs / "performance.md").write_text(page(results), encoding="utf-8")
    for name, drawn in plots(rows).items():
        (docs / name).write_text(drawn, encoding="utf-8")


def plots(rows: Sequence[Row]) -> dict[str, str]:
    """The plots by the names of their files."""
    return {
        "performance-provider.svg": provider_svg(by_subject(rows).provider),
        "performance.svg": svg(rows),
        "performance-knowledge.svg": knowledge_svg(rows),
    }


if __name__ == "__main__":
    write_docs(load_results())
