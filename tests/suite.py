"""Runs the suite in two parts: most tests side by side, then those marked `serial` one after the other.

`python -m tests.suite default|slow|all|fast [arguments of pytest]`; the last line counts the tests of both parts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SELECTIONS = {"default": "not slow", "slow": "slow", "all": "", "fast": "not slow and not process"}
NO_TESTS_COLLECTED = 5
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error|xfailed|xpassed|warning)")
SUMMARY = re.compile(r"^(?:=+ )?(?P<counts>(?:\d+ \w+(?:, )?)+) in (?P<seconds>[\d.]+)s\b")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def main(selection: str, *arguments: str) -> int:
    folders = [name for name in ("tests", "integration") if (ROOT / name).is_dir()]
    totals: Counter[str] = Counter()
    seconds = 0.0
    codes = []
    workers = max(2, len(os.sched_getaffinity(0)))
    parts = (("not serial", ["--numprocesses", str(workers), "--dist", "worksteal"]), ("serial", []))
    for part, options in parts:
        marks = " and ".join(filter(None, (SELECTIONS[selection], part)))
        code, lines = _pytest([*options, "-m", marks, *arguments, *folders])
        codes.append(0 if code == NO_TESTS_COLLECTED else code)
        for counts, took in map(_summary, lines):
            totals += counts
            seconds += took
    if not totals["passed"]:
        codes.append(NO_TESTS_COLLECTED)
    print(f" {', '.join(f'{count} {what}' for what, count in totals.items())} in {seconds:.2f}s ".center(100, "="))
    return max(codes)


def _pytest(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code and the last line of one run, whose output is passed on."""
    # Each worker would compile all test modules again.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    colour = ["--color=yes"] if sys.stdout.isatty() else []
    last: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *colour, *arguments], cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if SUMMARY.match(COLOUR.sub("", line)):
                last = [COLOUR.sub("", line)]
    return process.returncode, last


def _summary(line: str) -> tuple[Counter[str], float]:
    found = SUMMARY.match(line)
    assert found is not None
    counts = Counter({what: int(count) for count, what in COUNT.findall(found["counts"])})
    return counts, float(found["seconds"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
