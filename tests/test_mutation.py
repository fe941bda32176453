"""The packages of `make mutants`: a file that was renamed must not drop out of them unnoticed. Its samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation.packages import PACKAGES, Package
from mutation.sample import sample

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_the_sources_and_the_tests_of_a_package_exist(package: Package) -> None:
    assert all(list((ROOT / "ai_platform_engineering").glob(source)) for source in package.sources)
    assert package.tests
    assert all((ROOT / path).exists() for path in package.tests)


def test_a_sample_is_even_and_keeps_its_mutants_while_other_functions_change() -> None:
    unchanged = [f"module.x_{letter}__mutmut_{number}" for letter in "abcdefghij" for number in range(100)]
    changed = [f"module.x_changed__mutmut_{number}" for number in range(100)]

    chosen = sample(unchanged, 200, seed=1)

    assert chosen == sample(reversed(unchanged), 200, seed=1)
    assert chosen != sample(unchanged, 200, seed=2)
    assert len(set(chosen)) == 200
    assert all(sum(f"x_{letter}_" in mutant for mutant in chosen) in range(5, 36) for letter in "abcdefghij")
    # New mutants take the places of others, and push out none but those.
    after = sample([*unchanged, *changed], 200, seed=1)
    assert set(after) - set(changed) <= set(chosen)


def test_a_sample_of_a_small_package_is_all_of_it() -> None:
    assert sample(["b", "a"], 200, seed=1) == ["a", "b"]
