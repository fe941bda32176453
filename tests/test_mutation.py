"""The packages of `make mutants`: a file that was renamed must not drop out of them unnoticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation.packages import PACKAGES, Package

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_the_sources_and_the_tests_of_a_package_exist(package: Package) -> None:
    assert all(list((ROOT / "ai_platform_engineering").glob(source)) for source in package.sources)
    assert package.tests
    assert all((ROOT / path).exists() for path in package.tests)
