"""The audit record of a data directory, as tests read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ai_platform_engineering.audit.record import Entry, Seal
from ai_platform_engineering.audit.verification import verify
from ai_platform_engineering.storage.audit.file import AuditFile


def audited(data_dir: Path, *kinds: str, agent: str = "") -> list[Mapping[str, Any]]:
    """The facts of the entries of these kinds, of a record that is intact."""
    return [facts for facts in _facts(data_dir / f"audit{agent and f'-{agent}'}.db") if facts["kind"] in kinds]


def _facts(path: Path) -> Iterator[Mapping[str, Any]]:
    with closing(AuditFile(path, Seal())) as record, record.open_lines() as lines:
        head, found = record.head(), [*lines]
    assert verify(found, head, Seal()).problem is None
    yield from (Entry.read(line).facts for line in found)
