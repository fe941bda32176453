"""Runs mutmut over the named packages, or over all, and reports the changes of the code that no test notices.

Each package has a directory of its own in `.mutants`, which keeps the results: a later run tests the mutants of
functions that have changed since, and the survivors again. `survivors.diff` in it has the surviving changes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from mutation.packages import PACKAGES, Package

ROOT: Final = Path(__file__).parents[1]
WORK: Final = ROOT / ".mutants"
PRODUCT: Final = "ai_platform_engineering"
# Tests read these; mutmut copies the product and `tests` without being asked.
ALSO_COPIED: Final = ("README.md", "docs")

# Exit codes in mutmut's result files.
KILLED: Final = frozenset({1, 3})
TIMEOUT: Final = frozenset({-24, 24, 36, 152, 255})
SURVIVED: Final = 0
NO_TESTS: Final = frozenset({5, 33})


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"one of {', '.join(PACKAGES)}; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants are tested at the same time; default: 2")
    arguments = parser.parse_args()
    names = arguments.packages or list(PACKAGES)
    if unknown := sorted(set(names) - PACKAGES.keys()):
        parser.error(f"there is no package {', '.join(unknown)}; choose from {', '.join(PACKAGES)}")
    reports = []
    for name in names:
        directory = prepare(name, PACKAGES[name])
        known = set(survivors(directory))
        jobs = ("--max-children", str(arguments.jobs))
        mutmut(directory, "run", *jobs)
        # mutmut keeps a result as long as the function is the same, also when there are new tests.
        if again := sorted(known & set(survivors(directory))):
            mutmut(directory, "run", *jobs, *again)
        reports.append(report(name, directory, arguments.jobs))
    print("\n".join(reports))
    return 0


def prepare(name: str, package: Package) -> Path:
    """The directory that mutmut works in: the repository by links, with settings for this package."""
    directory = WORK / name
    directory.mkdir(parents=True, exist_ok=True)
    for entry in (PRODUCT, "tests", *ALSO_COPIED):
        if not (directory / entry).exists():
            (directory / entry).symlink_to(ROOT / entry)
    # mutmut adds to the tests it copied before, so that deleted ones would stay.
    shutil.rmtree(directory / "mutants/tests", ignore_errors=True)
    settings = {
        "source_paths": [PRODUCT],
        "only_mutate": [f"{PRODUCT}/{source}" for source in package.sources],
        "also_copy": list(ALSO_COPIED),
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "mutation.node_ids"],
        "pytest_add_cli_args_test_selection": list(package.tests),
        "timeout_multiplier": 4.0,
        "timeout_constant": 3.0,
    }
    # A list or a number of JSON is one of TOML.
    section = "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (directory / "pyproject.toml").write_text(f"{project}\n[tool.mutmut]\n{section}\n", encoding="utf-8")
    return directory


def mutmut(directory: Path, *arguments: str) -> None:
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    run = subprocess.run(command, cwd=directory, check=False)
    if run.returncode:
        sys.exit(f"mutmut failed in {directory}; see its output above.")


def results(directory: Path) -> dict[str, int | None]:
    """The exit code of the tests by mutant; None where they have not run."""
    codes: dict[str, int | None] = {}
    for file in sorted((directory / "mutants").rglob("*.py.meta")):
        codes |= json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
    return codes


def survivors(directory: Path) -> list[str]:
    """The mutants that no test has found, also for want of tests."""
    return [mutant for mutant, code in results(directory).items() if code == SURVIVED or code in NO_TESTS]


def report(name: str, directory: Path, jobs: int) -> str:
    codes = results(directory)
    counts = {
        "killed": sum(code in KILLED for code in codes.values()),
        "timed out": sum(code in TIMEOUT for code in codes.values()),
        "survived": sum(code == SURVIVED for code in codes.values()),
        "without tests": sum(code in NO_TESTS for code in codes.values()),
    }
    counts["without a result"] = len(codes) - sum(counts.values())
    with ThreadPoolExecutor(jobs) as pool:
        diffs = "\n".join(pool.map(partial(diff_of, directory), survivors(directory)))
    (directory / "survivors.diff").write_text(diffs, encoding="utf-8")
    found = counts["killed"] + counts["timed out"]
    share = f"{found / len(codes):.1%}" if codes else "no mutants"
    details = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"{name}: {share} of {len(codes)} mutants found ({details}); {directory / 'survivors.diff'}"


def diff_of(directory: Path, mutant: str) -> str:
    command = [str(Path(sys.executable).with_name("mutmut")), "show", mutant]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
