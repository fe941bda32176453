"""The locks: which extras can be installed beside requirements.lock, and what `make setup` does about them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
LOCKS = sorted((ROOT / "locks").glob("*.lock"))
INSTALLED_TOGETHER = [ROOT / "requirements.lock", *LOCKS, ROOT / ".ci/measure.txt"]


def pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE))


def select(*extras: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "locks/select", *extras], cwd=ROOT, capture_output=True, check=False, text=True)


def test_every_extra_has_a_lock_that_fits_the_others() -> None:
    assert {lock.stem for lock in LOCKS} == set(EXTRAS)
    together: dict[str, str] = {}
    for lock in INSTALLED_TOGETHER:
        assert pins(lock).items() >= {(name, together[name]) for name in pins(lock).keys() & together.keys()}
        together |= pins(lock)
        for requirement in EXTRAS.get(lock.stem, []):
            assert re.split(r"[\[<>=]", requirement)[0] in together


@pytest.mark.parametrize("lock", INSTALLED_TOGETHER, ids=lambda lock: lock.stem)
def test_a_lock_has_hashes_and_no_addresses(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert all("--hash=sha256:" in entry for entry in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:])


def test_extras_are_selected_by_name() -> None:
    assert select().stdout == ""
    assert select("aws groq").stdout.split() == select("aws", "groq").stdout.split()
    assert [Path(word).name for word in select("aws groq").stdout.split()] == ["aws.lock", "groq.lock"]
    assert {Path(word).stem for word in select("all").stdout.split()} == set(EXTRAS)
    wrong = select("aws", "gork")
    assert wrong.returncode == 1
    assert "'gork'" in wrong.stderr
    assert "groq" in wrong.stderr


@pytest.mark.parametrize(
    ("installed", "arguments", "expected"),
    [
        ("", [], None),
        ("aws groq", [], None),
        ("aws", ["EXTRAS=aws"], None),
        ("", ["EXTRAS=aws"], "aws"),
        ("aws", ["EXTRAS=all"], "all"),
        ("aws", ["EXTRAS="], ""),
    ],
)
def test_setup_keeps_the_installed_extras_until_others_are_named(
    installed: str, arguments: list[str], expected: str | None, tmp_path: Path
) -> None:
    """In a copy of what `make` looks at, with a stamp that is newer; `make -n` prints what it would do."""
    for name in ["Makefile", "requirements.lock", "pyproject.toml"]:
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/.set-up").write_text(f"{installed}\n")
    command = ["make", "-n", "setup", *arguments]
    # `make test EXTRAS=all` passes its own variables on.
    environ = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKEOVERRIDES", "EXTRAS")
    }
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True, env=environ).stdout
    selected = re.search(r"locks/select (.*)\) &&", printed)
    assert (selected and selected[1].strip()) == expected
