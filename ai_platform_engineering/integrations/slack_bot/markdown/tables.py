"""Markdown tables: a header, a line of dashes with the same number of columns, and rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Final

_CELL_END: Final = re.compile(r"(?<!\\)\|")
_DASHES: Final = re.compile(r":?-+:?")


def cells(line: str) -> list[str]:
    content = line.strip()
    parts = _CELL_END.split(content) if "\\|" in content else content.split("|")
    if len(parts) > 1 and not parts[0].strip():
        parts = parts[1:]
    if len(parts) > 1 and not parts[-1].strip():
        parts = parts[:-1]
    return [part.strip().replace("\\|", "|") for part in parts]


def begins(header: str, dashes: str) -> bool:
    """Whether two complete lines begin a table."""
    if "|" not in header or "|" not in dashes or not may_be_dashes(dashes):
        return False
    columns = cells(dashes)
    return all(map(_DASHES.fullmatch, columns)) and len(columns) == len(cells(header))


def may_be_dashes(line: str) -> bool:
    """Whether an unfinished line may become the dashes below a header."""
    return not line.strip("|:- \t\r\n")


def may_be_header(line: str) -> bool:
    """Whether a line is so likely part of a table that it is held back until the next line."""
    return line.lstrip().startswith("|")


def is_row(line: str) -> bool:
    return "|" in line


def as_csv(rows: Iterable[list[str]]) -> str:
    content = io.StringIO(newline="")
    csv.writer(content).writerows(rows)
    return content.getvalue()
