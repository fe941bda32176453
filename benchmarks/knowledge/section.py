"""The section about the knowledge base in docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from benchmarks.knowledge.plot import sizes
from benchmarks.knowledge.questions import questions
from benchmarks.measurements.knowledge import PARTS, STORES
from benchmarks.measurements.retrieval import METRICS, WAYS
from benchmarks.rows import Row, by_name

_SECTION: Final = """\
## Knowledge base

How well a question finds the places that answer it: {count} questions about this documentation, asked of an index that
also holds the READMEs of all packages that are installed with it. Both kinds of search alone, both together (hybrid),
and what callers are given, from which places that have little to do with the question, and third ones of a document,
are left out. {unrelated}

{quality}

{kinds}

What it costs, by the number of chunks:

![A search by part, memory and disk, and how they grow](performance-knowledge.svg)

{costs}

- Ingest: documents are read and cut at {read}, embedded at {embed}, and kept as the table shows. All of it together,
  with the {ingested} of the questions above, went at {ingest}: embedding is what takes the time.
- Loading the embedding model takes {load}, once in a process, which has {rest} before that and {model} after it. The
  memory in the table is all of it.
- The questions are in `benchmarks/knowledge/questions.yaml`. They were written from the documents before anything was
  measured. A place is a section of a document; one with several chunks counts where the first of them is found. How
  strongly first places count in the fusion, and what is left out, was chosen with these questions and may suit them
  better than others; with the constant that is usual for the fusion (60) hybrid was the best of the three as well.
- For the costs, sentences of the same real documents are put together anew, ten chunks a document. Their vectors are
  those of real chunks with noise; embedding itself is measured with real text. The searches are the questions above.
- *Keep* is the speed from the size before up to this one, *first search* includes opening the store and, with SQLite,
  bringing its vectors into memory. CPU and memory are those of the process that searches, not of the Postgres server.
{postgres}
{run}
"""
_POSTGRES: Final = """\
- Postgres runs on the machine that also searches, without `fsync`, as for tests. It is filled up to {size} chunks only:
  its index of vectors is made chunk by chunk, and more would take longer than all else here.
"""
_NO_POSTGRES: Final = "- Postgres was left out: there was no server. `make services` installs one.\n"
_COSTS: Final = {
    "keep": "Keep, chunks a second",
    "first": "First search, ms",
    "p50": "A search, median, ms",
    **{part: f"… {what}" for part, what in PARTS.items()},
    "p95": "A search, 95th percentile, ms",
    "cpu": "CPU of a search, ms",
    "memory": "Memory, MB",
    "more-memory": "… more than before it was opened",
    "disk": "On disk, MB",
}


def section(rows: Sequence[Row], run: str) -> str:
    found = by_name(rows)
    postgres = sizes(rows, "postgres")
    return _SECTION.format(
        count=found["retrieval.ndcg.bm25"].label.removeprefix("nDCG@10 of ").partition(" ")[0],
        unrelated=f"{found['retrieval.unrelated'].label}: {found['retrieval.unrelated'].value:.0f}.",
        quality=_quality(found),
        kinds=_kinds(found),
        costs=_costs(rows),
        read=found["knowledge.read"].shown_value,
        embed=found["knowledge.embed"].shown_value,
        ingest=found["retrieval.ingest"].shown_value,
        ingested=found["retrieval.ingest"].label.removeprefix("Ingest of ").partition(":")[0],
        rest=found["knowledge.memory.rest"].shown_value,
        model=found["knowledge.memory.model"].shown_value,
        load=found["knowledge.load"].shown_value,
        postgres=_POSTGRES.format(size=f"{postgres[-1]:,}") if postgres else _NO_POSTGRES,
        run=run,
    )


def _quality(found: dict[str, Row]) -> str:
    return _table(
        ["Search", *(title for title, _ in METRICS.values())],
        (
            [label, *(found[f"retrieval.{metric}.{way}"].shown_value for metric in METRICS)]
            for way, label in WAYS.items()
        ),
    )


def _kinds(found: dict[str, Row]) -> str:
    kinds = dict.fromkeys(question.kind for question in questions())
    return _table(
        ["nDCG@10 of", *WAYS.values()],
        (
            [
                found[f"retrieval.{kind}.bm25"].label.removeprefix("nDCG@10 of ").partition(":")[0],
                *(found[f"retrieval.{kind}.{way}"].shown_value for way in WAYS),
            ]
            for kind in kinds
        ),
    )


def _costs(rows: Sequence[Row]) -> str:
    found = by_name(rows)
    columns = [(store, size) for store in STORES for size in sizes(rows, store)]
    return _table(
        ["", *(f"{STORES[store]}, {size:,}" for store, size in columns)],
        (
            [title, *(f"{found[f'knowledge.{store}.{size}.{name}'].value:,.0f}" for store, size in columns)]
            for name, title in _COSTS.items()
        ),
    )


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
