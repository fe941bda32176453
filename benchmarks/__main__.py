"""Runs the measurements, prints them as tables, and writes them to the page on request."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter

from rich.console import Console

from benchmarks.effort import FULL, QUICK
from benchmarks.machine import load, this_machine
from benchmarks.measurements import EVERYTHING
from benchmarks.page import write_docs
from benchmarks.results import Result, load_results, save_results
from benchmarks.rows import Row
from benchmarks.table import tables


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure what a request costs, and the knowledge base."
    )
    parser.add_argument("--quick", action="store_true", help="a short run, to see that it works; the numbers are noise")
    parser.add_argument("--only", choices=list(EVERYTHING), action="append", metavar="NAME", help="measure only this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to a file as well")
    parser.add_argument(
        "--write-docs",
        action="store_true",
        help="write docs/performance.md and its plots; numbers that were not measured stay, with the date of their run",
    )
    options = parser.parse_args()

    machine = this_machine()
    console, progress = Console(), Console(stderr=True)
    found: dict[str, list[Row]] = {}
    for name in options.only or EVERYTHING:
        began = perf_counter()
        found[name] = EVERYTHING[name](QUICK if options.quick else FULL)
        progress.print(f"{name}: {perf_counter() - began:.0f} s", highlight=False)
    machine = replace(machine, load_after=load())
    rows = [row for part in found.values() for row in part]
    console.print(*tables(rows))
    if options.json:
        options.json.write_text(
            json.dumps({"machine": asdict(machine), "rows": [asdict(row) for row in rows]}, indent=1)
        )
    if options.write_docs:
        kept = load_results() | {name: Result(machine, tuple(part)) for name, part in found.items()}
        results = {name: kept[name] for name in EVERYTHING}
        save_results(results)
        write_docs(results)


if __name__ == "__main__":
    main()
