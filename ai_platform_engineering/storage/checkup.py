"""The check of one store for `platform-engineer doctor`. Each store has a check function beside it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from ai_platform_engineering.storage.sqlite.owned_file import lock_path
from ai_platform_engineering.storage.sqlite.shared_file import is_busy

IN_MEMORY: Final = "until the server stops"
_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class StoreCheckup:
    """`place` has no credentials. `facts` are numbers and flags, for example `{"bytes": 40960, "in_use": True}`.

    `usable` is None if there is nothing to open: the store is in memory, or its first use will create it. `problem` is
    why it cannot be used, and what to do.
    """

    name: str
    kind: str
    place: str
    usable: bool | None = None
    facts: Mapping[str, int | bool] = field(default_factory=dict)
    problem: str | None = None

    @classmethod
    def of_file(cls, name: str, path: Path) -> Self:
        """A SQLite file. `usable` is to be set by a check that opens the file, if it exists."""
        if not path.exists():
            return cls(name, "sqlite", str(path))
        facts: dict[str, int | bool] = {"bytes": _size(path)}
        if _is_owned(path):
            facts["in_use"] = True
        return cls(name, "sqlite", str(path), None, facts)

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return "bytes" in self.facts

    def opened(self, **facts: int) -> Self:
        return replace(self, usable=True, facts={**self.facts, **facts})

    def failed(self, problem: str) -> Self:
        return replace(self, usable=False, problem=problem)

    def __str__(self) -> str:
        """The facts in words."""
        words = [_in_words(name, value) for name, value in self.facts.items()]
        if self.usable is None and self.kind != "memory":
            words.append("not created yet")
        return ", ".join(words)


def _in_words(name: str, value: int | bool) -> str:
    match name:
        case "in_use":
            return "in use by a running process"
        case "format":
            return f"format {value}"
        case "bytes":
            return f"{value / _MEGABYTE:.1f} MB" if value >= _MEGABYTE else f"{value / 1000:.0f} KB"
        case _:
            return f"{value} {name.removesuffix('s') if value == 1 else name}"


def _size(path: Path) -> int:
    """The size of the file with its write-ahead log."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.is_file())


def _is_owned(path: Path) -> bool:
    """Whether a process has the file for itself. Creates no file."""
    lock = lock_path(path)
    if not lock.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{lock.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        return is_busy(error)
    return False


def is_writable(path: Path) -> bool:
    """Whether this user may write the file, or create it, and the files that SQLite creates beside it."""
    if path.exists():
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    directory = next(parent for parent in path.absolute().parents if parent.exists())
    return directory.is_dir() and os.access(directory, os.W_OK)
