"""Runs the suite in two parts: most tests side by side, then those marked `serial` one after the other.

`python -m tests.suite default|slow|all|fast|properties [arguments of pytest]`; the last line counts the tests of both
parts. The fast selection has one part, and one worker per core: none of its tests waits for a process, and every worker
imports all test modules.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.forks import are_possible

ROOT = Path(__file__).resolve().parent.parent
SELECTIONS = {
    "default": "not slow",
    "slow": "slow",
    "all": "",
    "fast": "not slow and not long and not process and not hypothesis",
    "properties": "hypothesis",
}
OPTIONS = {"properties": ["--hypothesis-profile=other-examples"]}
NO_TESTS_COLLECTED = 5
# Of packages that have a plugin for pytest, which the server of workers has imported.
IMPORTED_BEFORE = ("-W", "ignore:Module already imported so cannot be rewritten")
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error|xfailed|xpassed|warning)")
SUMMARY = re.compile(r"^(?:=+ )?(?P<counts>(?:\d+ \w+(?:, )?)+) in (?P<seconds>[\d.]+)s\b")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def main(selection: str, *arguments: str) -> int:
    folders = [name for name in ("tests", "integration") if (ROOT / name).is_dir()]
    cores = len(os.sched_getaffinity(0))
    # Many tests wait for processes.
    workers = cores if selection == "fast" else 1 + 2 * max(2, cores)
    parts = [("not serial", folders)]
    if selection != "fast" and (files := _serial_files(folders)):
        parts.append(("serial", files))
    codes, totals, seconds = [], Counter[str](), 0.0
    for part, paths in parts:
        marked = " and ".join(filter(None, (SELECTIONS[selection], part)))
        with _workers(workers, fork=selection != "fast") if part == "not serial" else nullcontext([]) as options:
            code, last = _pytest([*paths, *options, *OPTIONS.get(selection, []), "-m", marked, *arguments])
        # One of the parts may be empty, but not both.
        codes.append(0 if code == NO_TESTS_COLLECTED else code)
        counts, took = summary(last)
        totals += counts
        seconds += took
    counted = ", ".join(f"{count} {what}" for what, count in totals.items()) or "no tests ran"
    print(f" {counted} in {seconds:.2f}s ".center(100, "="))
    return max(codes) if totals else NO_TESTS_COLLECTED


@contextmanager
def _workers(number: int, *, fork: bool) -> Iterator[list[str]]:
    """The options for this number of workers: forks of a server that runs meanwhile, or processes of their own."""
    side_by_side = ["--dist", "worksteal"]
    if not fork or not are_possible():
        yield ["--numprocesses", str(number), *side_by_side]
        return
    with tempfile.TemporaryDirectory(prefix="workers-") as directory, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{directory}/socket")
        listener.listen()
        server = [sys.executable, "-m", "tests.worker_server", str(listener.fileno())]
        # The server ends with its standard input.
        with subprocess.Popen(server, cwd=ROOT, env=_environ(), stdin=subprocess.PIPE, pass_fds=[listener.fileno()]):
            # So that workers are refused if the server cannot start.
            listener.close()
            python = shlex.join([sys.executable, "-S", "-m", "tests.worker", f"{directory}/socket"])
            yield ["--tx", f"{number}*popen//python={python}", *side_by_side, *IMPORTED_BEFORE]


def _serial_files(folders: Sequence[str]) -> list[str]:
    """Test modules with the marker, so that the second part imports no others."""
    modules = (module for folder in folders for module in sorted((ROOT / folder).rglob("test_*.py")))
    return [str(module) for module in modules if "pytest.mark.serial" in module.read_text(encoding="utf-8")]


def _pytest(arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code of one run, whose output is passed on, and the line that counts its tests."""
    colour = ["--color=yes"] if sys.stdout.isatty() else []
    last = ""
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *colour, *arguments],
        cwd=ROOT,
        env=_environ(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if SUMMARY.match(COLOUR.sub("", line)):
                last = COLOUR.sub("", line)
    return process.returncode, last


def _environ() -> dict[str, str]:
    # With this variable, each worker would compile all test modules again.
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def summary(line: str) -> tuple[Counter[str], float]:
    """The counts in the last line of pytest, and its seconds."""
    found = SUMMARY.match(line)
    if found is None:
        return Counter(), 0.0
    counts = Counter({what: int(count) for count, what in COUNT.findall(found["counts"])})
    return counts, float(found["seconds"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
