"""The stores of the audit record, one contract for both."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.audit.log import AuditUnavailableError
from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.audit.verification import Verification, verify
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.storage.audit.file import head_path
from ai_platform_engineering.storage.audit.stores import AuditRecord, audit_file, audit_record, seal_of
from ai_platform_engineering.utils.private_files import create_private_file

pytest_plugins = ("tests.services.fixtures",)

KEY = "a-key-of-the-operator"
DAY_NS = 86_400 * 10**9


@pytest.fixture(params=["sqlite", "postgres"])
def settings_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Settings]:
    environ = {"EVENT_LOG": request.param, "DATA_DIR": str(tmp_path)}
    if request.param == "postgres":
        environ["EVENT_LOG_POSTGRES_DSN"] = request.getfixturevalue("database")
    return lambda **more: load_settings({**environ, **more}, None)


@pytest.fixture
def in_file(tmp_path: Path) -> Settings:
    return load_settings({"DATA_DIR": str(tmp_path)}, None)


@pytest.fixture
def record(settings_of: Callable[..., Settings]) -> Iterator[AuditRecord]:
    with closing(audit_record(settings_of())) as opened:
        yield opened


def facts(*targets: str, days: float = 0) -> list[AuditFact]:
    return [AuditFact("sign_in", target=each, time_ns=time.time_ns() - int(days * DAY_NS)) for each in targets]


def lines_of(record: AuditRecord) -> list[str]:
    with record.open_lines() as lines:
        return [*lines]


def verified(settings: Settings) -> Verification:
    with closing(audit_record(settings)) as record:
        return verify(lines_of(record), record.head(), seal_of(settings))


def test_writers_share_one_chain(settings_of: Callable[..., Settings], record: AuditRecord) -> None:
    settings = settings_of()
    assert verified(settings).entries == 0

    def write(_number: int) -> None:
        with closing(audit_record(settings)) as own:
            for target in "abcde":
                own.append(facts(target))

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(write, range(4))]
    found = verified(settings)
    assert (found.entries, found.problem, found.head.seq) == (20, None, 20)
    with record.open_lines(newest_first=True) as lines:
        assert next(lines) == lines_of(record)[-1]
    assert record.check_up("audit record").facts["entries"] == 20


def test_agents_have_records_of_their_own(settings_of: Callable[..., Settings], record: AuditRecord) -> None:
    with closing(audit_record(settings_of(), "argocd")) as other:
        other.append(facts("theirs"))
        record.append(facts("ours"))
        assert len(lines_of(other)) == len(lines_of(record)) == 1


def test_old_entries_are_deleted_and_the_rest_can_be_verified(settings_of: Callable[..., Settings]) -> None:
    settings = settings_of(AUDIT_RETENTION_DAYS="30", AUDIT_KEY=KEY)
    with closing(audit_record(settings)) as record:
        record.append(facts("a", "b", days=40))
        record.append(facts("c", "d"))
        for _ in range(2):
            record.prune()
        record.append(facts("e"))
    found = verified(settings)
    assert (found.entries, found.problem) == (4, None)


def test_entries_that_were_cut_off_stay_missing_after_the_next_entry(in_file: Settings) -> None:
    path = audit_file(in_file)
    with closing(audit_record(in_file)) as record:
        record.append(facts("a", "b", "c"))
        _delete(path, "seq = 3")
        assert verified(in_file).problem == "Entry 3 was removed from the end."
        record.append(facts("d"))
        assert "it ended with entry 2, though entry 3 had been written" in (verified(in_file).problem or "")
    path.unlink()
    head_path(path).unlink()
    with closing(audit_record(in_file)) as record:
        record.append(facts("a", "b"))
    _delete(path, "seq = 2")
    with closing(audit_record(in_file)) as record:
        record.append(facts("c"))
    assert "it ended with entry 1, though entry 2 had been written" in (verified(in_file).problem or "")


def _delete(path: Path, which: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"DELETE FROM entry WHERE {which}")  # noqa: S608


def test_entries_cannot_be_changed_by_accident(in_file: Settings) -> None:
    with closing(audit_record(in_file)) as record:
        record.append(facts("a"))
    with closing(sqlite3.connect(audit_file(in_file))) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE entry SET line = ''")


def test_a_write_that_was_torn_is_not_reported_as_a_change(in_file: Settings, tmp_path: Path) -> None:
    """The machine lost power while the second entry was written: its commit is incomplete, the head is the first."""
    path, copy = audit_file(in_file), load_settings({"DATA_DIR": str(tmp_path / "copy")}, None)
    copy.data_dir.mkdir()
    with closing(audit_record(in_file)) as record:
        record.append(facts("a"))
        head = head_path(path).read_bytes()
        whole = path.with_name("audit.db-wal").stat().st_size
        record.append(facts("b"))
        log = path.with_name("audit.db-wal").read_bytes()
        audit_file(copy).write_bytes(path.read_bytes())
    assert len(log) > whole
    (copy.data_dir / "audit.db-wal").write_bytes(log[: (whole + len(log)) // 2])
    head_path(audit_file(copy)).write_bytes(head)
    assert (verified(copy).entries, verified(copy).problem) == (1, None)
    with closing(audit_record(copy)) as record:
        record.append(facts("c"))
    assert (verified(copy).entries, verified(copy).problem) == (2, None)


def test_a_file_that_is_created_at_this_moment_has_no_entries(in_file: Settings) -> None:
    create_private_file(audit_file(in_file))
    record = audit_record(in_file)
    assert lines_of(record) == []
    assert record.check_up("audit record").problem is None


def test_a_file_that_cannot_be_used_is_named(in_file: Settings) -> None:
    path = audit_file(in_file)
    path.write_bytes(b"not a database" * 100)
    with closing(audit_record(in_file)) as record:
        with pytest.raises(AuditUnavailableError, match="cannot be used for the audit record: file is not a database"):
            record.append(facts("a"))
        assert not record.check_up("audit record").usable
