"""Runs the suite in two parts: most tests side by side, then those marked `serial` one after the other.

`python -m tests.suite default|slow|all|fast [arguments of pytest]`; the last line counts the tests of both parts. The
fast selection has one part, and one worker per core: none of its tests waits for a process, and every worker imports
all test modules.
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
SELECTIONS = {
    "default": "not slow",
    "slow": "slow",
    "all": "",
    "fast": "not slow and not long and not process and not hypothesis",
}
NO_TESTS_COLLECTED = 5
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error|xfailed|xpassed|warning)")
SUMMARY = re.compile(r"^(?:=+ )?(?P<counts>(?:\d+ \w+(?:, )?)+) in (?P<seconds>[\d.]+)s\b")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def main(selection: str, *arguments: str) -> int:
    folders = [name for name in ("tests", "integration") if (ROOT / name).is_dir()]
    cores = len(os.sched_getaffinity(0))
    # Many tests wait for processes.
    workers = cores if selection == "fast" else 1 + 2 * max(2, cores)
    parts = [("not serial", [*folders, "--numprocesses", str(workers), "--dist", "worksteal"])]
    if selection != "fast" and (files := _serial_files(folders)):
        parts.append(("serial", files))
    codes, totals, seconds = [], Counter[str](), 0.0
    for part, options in parts:
        code, last = _pytest([*options, "-m", " and ".join(filter(None, (SELECTIONS[selection], part))), *arguments])
        # One of the parts may be empty, but not both.
        codes.append(0 if code == NO_TESTS_COLLECTED else code)
        counts, took = summary(last)
        totals += counts
        seconds += took
    counted = ", ".join(f"{count} {what}" for what, count in totals.items()) or "no tests ran"
    print(f" {counted} in {seconds:.2f}s ".center(100, "="))
    return max(codes) if totals else NO_TESTS_COLLECTED


def _serial_files(folders: Sequence[str]) -> list[str]:
    """Test modules with the marker, so that the second part imports no others."""
    modules = (module for folder in folders for module in sorted((ROOT / folder).rglob("test_*.py")))
    return [str(module) for module in modules if "pytest.mark.serial" in module.read_text(encoding="utf-8")]


def _pytest(arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code of one run, whose output is passed on, and the line that counts its tests."""
    # Each worker would compile all test modules again.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    colour = ["--color=yes"] if sys.stdout.isatty() else []
    last = ""
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *colour, *arguments], cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if SUMMARY.match(COLOUR.sub("", line)):
                last = COLOUR.sub("", line)
    return process.returncode, last


def summary(line: str) -> tuple[Counter[str], float]:
    """The counts in the last line of pytest, and its seconds."""
    found = SUMMARY.match(line)
    if found is None:
        return Counter(), 0.0
    counts = Counter({what: int(count) for count, what in COUNT.findall(found["counts"])})
    return counts, float(found["seconds"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
