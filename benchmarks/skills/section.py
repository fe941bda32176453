"""The section about skills in docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.measurements.skills import LABELS
from benchmarks.rows import Row, by_name

_SECTION: Final = """\
## Skills

The cost of the catalog by the number of skills in `SKILLS_DIR`, compared with deepagents' own
`SkillsMiddleware` over a `FilesystemBackend` with the same folders, which reads all of them in each new conversation
and lists all of them in the prompt.

{table}

- *Before a turn of the model* is the check for changes in the store, the view of the caller and the list for the
  prompt. Beyond `SKILLS_PROMPT_MAX_CHARS` the prompt has a sentence, and the model searches.
- *A new skill* is created in the store; the next turn loads and indexes it.
- The product also has its built-in skills in each column. The others have 150 characters of description and 2 KB of
  steps. Medians; the start is the best of three.

{run}
"""


def sizes(rows: Sequence[Row]) -> list[int]:
    return sorted({int(row.name.split(".")[1]) for row in rows})


def section(rows: Sequence[Row], run: str) -> str:
    found = by_name(rows)
    counts = sizes(rows)
    lines = [
        f"| | {' | '.join(f'{count:,}' for count in counts)} | {counts[-1]:,} compared with {counts[0]:,} |",
        f"| --- |{' ---: |' * (len(counts) + 1)}",
    ]
    for name, label in LABELS.items():
        row = [found[f"skills.{count}.{name}"] for count in counts]
        growth = row[-1].value / row[0].value
        lines.append(f"| {label} | {' | '.join(each.shown_value for each in row)} | {growth:.1f}x |")
    return _SECTION.format(table="\n".join(lines), run=run)
