"""The distributions have the built page; its sources are in the source distribution only."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ai_platform_engineering.ui.page import BUILT
from tests.services.environment import not_here

ROOT = Path(__file__).resolve().parents[2]
UI = BUILT.parent.relative_to(ROOT).as_posix()
BUILD = "import hatchling.build, sys; getattr(hatchling.build, sys.argv[1])(sys.argv[2])"


@pytest.fixture
def page() -> set[str]:
    """The files of the built page, as paths of the repository."""
    if not (BUILT / "index.html").is_file():
        not_here("the page was not built: make setup builds it where Node.js 20 or newer or PyPI can be reached")
    return {path.relative_to(ROOT).as_posix() for path in BUILT.rglob("*") if path.is_file()}


def build(kind: str, directory: Path) -> Path:
    subprocess.run([sys.executable, "-c", BUILD, kind, str(directory)], cwd=ROOT, capture_output=True, check=True)
    (built,) = directory.iterdir()
    return built


def test_the_wheel_has_the_page_without_its_sources(page: set[str], tmp_path: Path) -> None:
    with zipfile.ZipFile(build("build_wheel", tmp_path)) as wheel:
        names = {name for name in wheel.namelist() if name.startswith(f"{UI}/")}
    assert names == page | {f"{UI}/__init__.py", f"{UI}/page.py"}


def test_the_source_distribution_has_the_page_and_its_sources(page: set[str], tmp_path: Path) -> None:
    with tarfile.open(build("build_sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert page <= names
    assert {f"{UI}/web/page", f"{UI}/web/package-lock.json", f"{UI}/web/src/main.tsx"} <= names
    installed = ("node_modules", "built-tests", ".venv", ".node", ".services")
    assert [name for name in names if not set(installed).isdisjoint(name.split("/"))] == []
