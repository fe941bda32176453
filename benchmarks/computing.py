"""Processes that only compute: what the cores of the machine give to two processes compared with one.

`python -m benchmarks.computing` is such a process. Each line on its standard input orders units of work, and is
answered when they are done.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.processes import Process, started
from benchmarks.samples import Answered, Sample, sample

_DATA: Final = [{"number": number, "text": str(number), "list": [number] * 5} for number in range(2000)]


@dataclass(frozen=True)
class Computing:
    """Each process gets its share of the requests. Only the requests per second are measured."""

    processes: Sequence[Process]

    def load(self, requests: int, *, streams: int = 1, context: str | None = None) -> Sample:
        share = requests // len(self.processes)
        began = time.perf_counter()
        with ThreadPoolExecutor(len(self.processes)) as callers:
            list(callers.map(lambda process: process.order({"units": share}), self.processes))
        seconds = time.perf_counter() - began
        return sample([Answered(seconds, seconds, seconds, 0)] * requests, (), seconds)


@contextmanager
def computing(processes: int) -> Iterator[Computing]:
    with ExitStack() as stack:
        yield Computing([stack.enter_context(started("benchmarks.computing")) for _ in range(processes)])


def main() -> int:
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(json.loads(line)["units"]):
            json.loads(json.dumps(_DATA))
        print("{}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
