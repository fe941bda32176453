"""Where the packages with servers are, and what happens where they are not."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def services_directory() -> Path:
    return Path(os.environ.get("SERVICES_VENV") or ROOT / ".services")


def not_here(reason: str) -> NoReturn:
    """Skips, or fails where the services are required."""
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def package_file(path: str, package: str) -> Path:
    """A file or directory of an installed package. Skips where the package is missing."""
    found = sorted(services_directory().glob(f"lib/python*/site-packages/{path}"))
    if not found:
        not_here(f"{services_directory()} has no {package} (make services installs it)")
    return found[-1].absolute()


@contextmanager
def download_lock(name: str) -> Iterator[None]:
    """Held by one process of this machine at a time: npx spoils its cache when two fill it at once."""
    with (Path(tempfile.gettempdir()) / f"ai-platform-engineering-{name}.lock").open("w") as file:
        flock(file, LOCK_EX)
        yield
