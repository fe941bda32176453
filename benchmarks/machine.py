"""The machine that the numbers are from."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Final

from benchmarks.processes import ROOT

_LIBRARIES: Final = ("deepagents", "langgraph", "langchain-core", "a2a-sdk")


@dataclass(frozen=True, slots=True)
class Machine:
    date: str
    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    libraries: str
    load_before: float
    load_after: float | None = None
    extras: str | None = None
    """The installed extras; None if that was not recorded. Libraries import some packages of them at a start, also in
    the plain graph."""

    @property
    def description(self) -> str:
        extras = "not recorded" if self.extras is None else self.extras or "none"
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gb:.0f} GB, {self.system}, Python {self.python}; "
            f"{self.libraries}; extras: {extras}"
        )

    @property
    def shown_load(self) -> str:
        """The average number of processes that could run."""
        after = "" if self.load_after is None else f" and {self.load_after:.1f} after"
        return f"load average {self.load_before:.1f} before{after} the run"


def this_machine() -> Machine:
    return Machine(
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gb=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        libraries=", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        load_before=load(),
        extras=", ".join(_extras()),
    )


def load() -> float:
    """The load average of the last five minutes."""
    return os.getloadavg()[1]


def _extras() -> list[str]:
    """The extras that add packages to `requirements.lock` and are installed."""
    installed = {re.sub(r"[-_.]+", "-", found.name).lower() for found in distributions()}
    # A line with a marker names a package that other systems need.
    packages = {
        lock.stem: {*re.findall(r"^([\w.-]+)==\S+ \\$", lock.read_text(), re.MULTILINE)}
        for lock in sorted(ROOT.glob("locks/*.lock"))
    }
    return [extra for extra, names in packages.items() if names and names <= installed]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
