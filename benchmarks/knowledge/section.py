"""The section about the knowledge base in docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.knowledge.plot import sizes
from benchmarks.knowledge.questions import questions
from benchmarks.markdown import table
from benchmarks.measurements.knowledge import PARTS, STORES
from benchmarks.measurements.retrieval import METRICS, WAYS
from benchmarks.rows import Row, by_name

_SECTION: Final = """\
## Knowledge base

The quality of the results for {count} questions about this documentation. The index also contains the READMEs of all
installed packages. The table compares keyword search, vector search, both fused (hybrid), and the search that callers
use, which drops weak matches and all but two results of each document.
{unrelated}

{quality}

{kinds}

The cost by the number of chunks:

![A search by part, memory and disk, and how they grow](performance-knowledge.svg)

{costs}

- Ingest: documents are read and chunked at {read} and embedded at {embed}; the table shows the speed of storing.
  The whole ingest of the {ingested} for the questions above ran at {ingest}. Embedding takes most of the time.
- Loading the embedding model takes {load}, once per process. The process uses {rest} of memory before that and
  {model} after it. The memory in the table is the total.
- The questions are in `benchmarks/knowledge/questions.yaml`. They were written from the documents before anything
  was measured. A result is a section of a document; a section with several chunks has the rank of the first one.
  The constant of the fusion and the limits for weak matches were chosen with these questions and may suit them
  better than others. With the usual constant (60), hybrid was also the best of the three.
- For the costs, documents of ten chunks are generated from sentences of the same real documents. Their vectors are
  those of real chunks with noise. Embedding is measured with real text. The queries are the questions above.
- *Store* is the speed while the store grows from the previous size to this one. *First search* includes opening the
  store and, with SQLite, loading its vectors into memory. CPU and memory are those of the searching process, not of
  the Postgres server.
{postgres}
{run}
"""
_POSTGRES: Final = """\
- Postgres runs on the same machine as the search, without `fsync`, as in the tests. It is filled with only {size}
  chunks: its vector index is built chunk by chunk, and more would take longer than all other measurements.
"""
_NO_POSTGRES: Final = "- Postgres was not measured, because it is not installed. `make services` installs it.\n"
_COSTS: Final = {
    "keep": "Store, chunks a second",
    "first": "First search, ms",
    "p50": "A search, median, ms",
    **{part: f"… {what}" for part, what in PARTS.items()},
    "p95": "A search, 95th percentile, ms",
    "cpu": "CPU of a search, ms",
    "memory": "Memory, MB",
    "more-memory": "… added by opening and searching it",
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
    return table(
        ["Search", *(title for title, _ in METRICS.values())],
        (
            [label, *(found[f"retrieval.{metric}.{way}"].shown_value for metric in METRICS)]
            for way, label in WAYS.items()
        ),
    )


def _kinds(found: dict[str, Row]) -> str:
    kinds = dict.fromkeys(question.kind for question in questions())
    return table(
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
    return table(
        ["", *(f"{STORES[store]}, {size:,}" for store, size in columns)],
        (
            [title, *(f"{found[f'knowledge.{store}.{size}.{name}'].value:,.0f}" for store, size in columns)]
            for name, title in _COSTS.items()
        ),
    )
