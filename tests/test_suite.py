"""How the suite is run: the parts add up, and the tests that start processes are known."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.selection import OURS, Cost, ProcessStarts, longest_first
from tests.servers import CommandLine, serving
from tests.suite import SUMMARY, summary


@pytest.mark.parametrize(
    ("line", "counts", "seconds"),
    [
        ("==== 1 failed, 20 passed, 3 skipped, 7 deselected, 1 warning, 2 errors in 61.20s (0:01:01) ====", 27, 61.2),
        ("5 passed in 0.10s", 5, 0.1),
        ("==== no tests ran in 0.01s ====", 0, 0),
        ("Build finished in 3s", 0, 0),
    ],
)
def test_the_last_line_is_counted(line: str, counts: int, seconds: float) -> None:
    found, took = summary(line)
    assert (found.total(), took) == (counts, seconds)
    assert "deselected" not in found


def test_every_test_module_is_known_by_its_whole_name(request: pytest.FixtureRequest) -> None:
    """A package in a folder that is none would have a name by which nothing here knows it as a test."""
    functions = [item.function for item in request.session.items if isinstance(item, pytest.Function)]
    assert {function.__module__.partition(".")[0] for function in functions} <= {*OURS}


def test_fixtures_of_all_tests_start_nothing(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("process") is None


def runs_a_command() -> None:
    subprocess.run(["true"], check=True)


async def calls_a_helper() -> None:
    await asyncio.to_thread(runs_a_command)


class Holder:
    async def start(self) -> None:
        async with CommandLine([], {}):
            pass


async def serves_an_app() -> None:
    async with serving(lambda settings: settings, {}):
        pass


def uses_a_class() -> Any:
    return [Holder() for _ in range(2)]


def asks_for_a_fixture(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("platform_engineer")


def calls_itself_through_another() -> Any:
    return [is_called_back, runs_a_command]


def is_called_back() -> Any:
    return calls_itself_through_another


def starts_nothing() -> Any:
    return SUMMARY, Counter, Path


@pytest.mark.parametrize(
    ("function", "starts"),
    [
        (runs_a_command, True),
        (calls_a_helper, True),
        (uses_a_class, True),
        (serves_an_app, True),
        (asks_for_a_fixture, True),
        (starts_nothing, False),
    ],
)
def test_a_start_of_a_process_is_seen_through_helpers(
    request: pytest.FixtureRequest, function: Any, starts: bool
) -> None:
    assert ProcessStarts(request.node).of(function) is starts


@pytest.mark.parametrize("first", [calls_itself_through_another, is_called_back])
def test_a_start_of_a_process_is_seen_in_a_cycle_of_helpers(request: pytest.FixtureRequest, first: Any) -> None:
    starts = ProcessStarts(request.node)
    starts.of(first)
    assert starts.of(calls_itself_through_another)
    assert starts.of(is_called_back)


def test_both_parts_are_run_and_counted_once(tmp_path: Path) -> None:
    """With a suite of three: one for each part, and one that is left out."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_three.py").write_text(
        "import pytest\n\n\ndef test_one(): pass\n\n\n@pytest.mark.serial\ndef test_two(): assert SERIAL\n\n\n"
        "@pytest.mark.slow\ndef test_three(): assert False\n\n\nSERIAL = True\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  serial\n  slow\n")
    script = "import sys, tests.suite as s; from pathlib import Path; s.ROOT = Path(sys.argv[1]); "
    command = [sys.executable, "-c", script + "sys.exit(s.main(*sys.argv[2:]))", str(tmp_path)]
    root = Path(__file__).parents[1]

    # Other plugins take seconds to import, in every worker, and one worker is enough for a test.
    xdist = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist --maxprocesses 1"}
    environ = {**os.environ, **xdist, "FORKED_COMMANDS": "0"}

    def ended(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [*command, *arguments], cwd=root, env=environ, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout.splitlines()[-1].strip("= ").partition(" in ")[0]

    assert ended("default") == (0, "2 passed")
    assert ended("slow") == (1, "1 failed")
    assert ended("all", "-k", "nothing") == (5, "no tests ran")


def test_every_worker_begins_with_its_share_of_the_longest_tests() -> None:
    names = [f"{cost}{number}" for cost, count in (("q", 10), ("p", 8), ("s", 5)) for number in range(count)]
    costs: dict[str, Cost] = {"q": "quick", "p": "process", "s": "slow"}
    ordered = longest_first(names, [costs[name[0]] for name in names], 4)
    assert sorted(ordered) == sorted(names)
    # As xdist cuts it: 23 // 4, 18 // 3, 12 // 2 and the rest.
    parts = [ordered[:5], ordered[5:11], ordered[11:17], ordered[17:]]
    assert [[name for name in part if name[0] != "q"] for part in parts] == [
        ["s4", "s0", "p0", "p1"],
        ["s3", "p2", "p3"],
        ["s2", "p4", "p5"],
        ["s1", "p6", "p7"],
    ]
    assert all(part == sorted(part, key=lambda name: "spq".index(name[0])) for part in parts)


def test_property_tests_draw_the_same_examples_unless_others_are_asked_for() -> None:
    assert settings.get_profile("same-examples").derandomize
    assert not settings.get_profile("other-examples").derandomize
