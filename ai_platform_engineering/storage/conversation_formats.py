"""The format versions of SQLite files that LangGraph's tables are in, stored as `user_version`.

Imports nothing of LangGraph, so that a file can be checked before LangGraph is loaded.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ai_platform_engineering.settings import SettingsError


@dataclass(frozen=True, slots=True)
class FileFormat:
    """`version` is the one that this release writes. It also reads and migrates files without a version, which release
    0.1.0 wrote with some of the tables `unversioned`. `without_file` is the setting for a store without such a file."""

    version: int
    unversioned: frozenset[str]
    content: str = "conversations"
    without_file: str = "CONVERSATIONS=memory"


CONVERSATIONS: Final = FileFormat(1, frozenset({"checkpoints", "writes"}))
"""The supervisor's file: the tables of LangGraph's `SqliteSaver`. Version 1 has the same tables as no version."""

AGENT_CONVERSATIONS: Final = FileFormat(2, frozenset({"waiting", "checkpoints", "writes"}))
"""An agent's file: the tables of `SqliteSaver`. Until version 1 it had only the conversations with an open form, which
the table `waiting` listed. Without a version, `waiting` has each of them as one blob."""


def check_format(connection: sqlite3.Connection, path: Path, known: FileFormat) -> int:
    """The version of the file, 0 if it has none yet. Raises if this release cannot read it."""
    found, names = connection.execute(
        "SELECT user_version, (SELECT group_concat(name) FROM sqlite_master WHERE type = 'table')"
        " FROM pragma_user_version"
    ).fetchone()
    way_out = f"choose another directory with DATA_DIR, or set {known.without_file}."
    if found > known.version:
        raise SettingsError(
            f"{path} was written by a newer version of this product (format {found}; this version reads up to "
            f"{known.version}). Update the product, {way_out}"
        )
    if found < 0 or (found == 0 and not {*(names or "").split(",")} <= {"", *known.unversioned}):
        raise SettingsError(
            f"{path} has an unknown format: it is not a file of {known.content}. Move it away, {way_out}"
        )
    return int(found)


def write_format(connection: sqlite3.Connection, known: FileFormat) -> None:
    connection.execute(f"PRAGMA user_version = {known.version}")
