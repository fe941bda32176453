"""Runs mutmut over the named packages, or over all, and reports the changes of the code that no test notices.

Each package has a directory of its own in `.mutants`, which keeps the results: a later run tests the mutants of
functions that have changed since, and the survivors again. `survivors.diff` in it has the surviving changes. With a
sample, the run tests and reports that many of the mutants.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from mutation.packages import PACKAGES, Package
from mutation.sample import sample

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
FOUND: Final = KILLED | TIMEOUT


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"one of {', '.join(PACKAGES)}; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants are tested at the same time; default: 2")
    parser.add_argument("--sample", type=int, metavar="N", help="test N mutants of each package; default: all")
    parser.add_argument("--seed", type=int, default=1, help="another seed chooses another sample; default: 1")
    arguments = parser.parse_args()
    names = arguments.packages or list(PACKAGES)
    if unknown := sorted(set(names) - PACKAGES.keys()):
        parser.error(f"there is no package {', '.join(unknown)}; choose from {', '.join(PACKAGES)}")
    if arguments.sample is not None and arguments.sample < 1:
        parser.error("a sample has at least one mutant")
    reports = []
    for name in names:
        directory = prepare(name, PACKAGES[name])
        if arguments.sample is None:
            run_all(directory, arguments.jobs)
            chosen = list(results(directory))
        else:
            chosen = run_sample(directory, arguments.jobs, arguments.sample, arguments.seed)
        reports.append(report(name, directory, chosen, arguments.jobs))
    print("\n".join(reports))
    return 0


def run_all(directory: Path, jobs: int) -> None:
    known = set(survivors(results(directory)))
    mutmut(directory, "run", "--max-children", str(jobs))
    # mutmut keeps a result as long as the function is the same, also when there are new tests.
    if again := sorted(known & set(survivors(results(directory)))):
        mutmut(directory, "run", "--max-children", str(jobs), *again)


def run_sample(directory: Path, jobs: int, size: int, seed: int) -> list[str]:
    """Tests the mutants of the sample that no test has found yet, and returns the whole sample."""
    generate(directory)
    codes = results(directory)
    chosen = sample(codes, size, seed)
    if untested := [mutant for mutant in chosen if codes[mutant] not in FOUND]:
        mutmut(directory, "run", "--max-children", str(jobs), *untested)
    return chosen


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
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "mutation.node_ids", "-m", "not process"],
        "pytest_add_cli_args_test_selection": list(package.tests),
        "timeout_multiplier": 4.0,
        "timeout_constant": 3.0,
    }
    # A list or a number of JSON is one of TOML.
    section = "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (directory / "pyproject.toml").write_text(f"{project}\n[tool.mutmut]\n{section}\n", encoding="utf-8")
    return directory


def generate(directory: Path) -> None:
    """Writes the mutants without testing them.

    mutmut has no command for that. It refuses a name that no mutant has, but after it has written all of them.
    """
    command = [str(Path(sys.executable).with_name("mutmut")), "run", "no-mutant-has-this-name"]
    run = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)
    if "nothing matches" not in run.stderr:
        sys.exit(f"mutmut failed in {directory}:\n{run.stdout}{run.stderr}")


def mutmut(directory: Path, *arguments: str) -> None:
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    run = subprocess.run(command, cwd=directory, check=False)
    if run.returncode:
        sys.exit(f"mutmut failed in {directory}; see its output above.")


def results(directory: Path) -> dict[str, int | None]:
    """The exit code of the tests by mutant; None where they have not run."""
    codes: dict[str, int | None] = {}
    mutants = directory / "mutants"
    for file in sorted(mutants.rglob("*.py.meta")):
        # mutmut keeps the results of files that were moved or deleted.
        if not (ROOT / file.relative_to(mutants)).with_suffix("").exists():
            continue
        codes |= json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
    return codes


def survivors(codes: Mapping[str, int | None]) -> list[str]:
    """The mutants that no test has found, also for want of tests."""
    return [mutant for mutant, code in codes.items() if code == SURVIVED or code in NO_TESTS]


def report(name: str, directory: Path, chosen: Sequence[str], jobs: int) -> str:
    every = results(directory)
    codes = {mutant: every[mutant] for mutant in chosen}
    counts = {
        "killed": sum(code in KILLED for code in codes.values()),
        "timed out": sum(code in TIMEOUT for code in codes.values()),
        "survived": sum(code == SURVIVED for code in codes.values()),
        "without tests": sum(code in NO_TESTS for code in codes.values()),
    }
    counts["without a result"] = len(codes) - sum(counts.values())
    with ThreadPoolExecutor(jobs) as pool:
        diffs = "\n".join(pool.map(partial(diff_of, directory), survivors(codes)))
    (directory / "survivors.diff").write_text(diffs, encoding="utf-8")
    found = counts["killed"] + counts["timed out"]
    share = f"{found / len(codes):.1%}" if codes else "no mutants"
    details = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    mutants = f"{len(every)} mutants" if len(codes) == len(every) else f"{len(codes)} sampled of {len(every)} mutants"
    return f"{name}: {share} of {mutants} found ({details}); {directory / 'survivors.diff'}"


def diff_of(directory: Path, mutant: str) -> str:
    command = [str(Path(sys.executable).with_name("mutmut")), "show", mutant]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
