from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.sandbox.records import Employee, GithubRepository, Record, Ticket
from ai_platform_engineering.sandbox.seed import seed_records
from ai_platform_engineering.sandbox.store import FORMAT, SandboxError, SandboxStore, reset_sandbox, sandbox_path

ADD_TICKETS = """
import sys
from pathlib import Path
from ai_platform_engineering.sandbox.records import Ticket
from ai_platform_engineering.sandbox.store import SandboxStore

store = SandboxStore(Path(sys.argv[1]))
for _ in range(5):
    with store.write() as session:
        tickets = session.all(Ticket)
        number = 1 + max(ticket.number for ticket in tickets if ticket.project == "SHOP")
        now = session.advance_clock()
        session.put(tickets[0].replace(project="SHOP", number=number, created=now, updated=now))
        print(number)
"""


def processes(count: int, path: Path) -> list[str]:
    running = [
        subprocess.Popen([sys.executable, "-c", ADD_TICKETS, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * count
    return [line for output in outputs for line in output.split()]


def everything(store: SandboxStore) -> set[Record]:
    kinds = {type(record) for record in seed_records()}
    with store.read() as session:
        return {record for kind in kinds for record in _unhashable_aside(session.all(kind))}


def _unhashable_aside(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.key != "organization"]


def test_a_new_file_holds_the_seed(store: SandboxStore) -> None:
    assert everything(store) == set(_unhashable_aside(seed_records()))


def test_processes_that_start_at_once_seed_once_and_never_share_a_number(store: SandboxStore) -> None:
    numbers = [int(number) for number in processes(4, store.path)]
    assert sorted(numbers) == list(range(120, 140))
    with store.read() as session:
        assert len(session.all(Ticket)) == 16 + 20
        assert session.organization().now.isoformat() == "2026-04-08T09:50:00+00:00"
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_change_that_raises_leaves_nothing(store: SandboxStore) -> None:
    def change() -> None:
        with store.write() as session:
            session.put(Employee(login="eve", name="Eve", role="Guest"))
            session.advance_clock()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        change()
    assert everything(store) == set(_unhashable_aside(seed_records()))
    with store.read() as session:
        assert session.organization().now.minute == 30


def test_it_survives_a_restart_and_reset_brings_the_seed_back(store: SandboxStore) -> None:
    with store.write() as session:
        session.put(Employee(login="eve", name="Eve", role="Guest"))
    again = SandboxStore(store.path)
    with again.read() as session:
        assert session.find(Employee, "eve") is not None
    reset_sandbox(store.path)
    assert everything(again) == set(_unhashable_aside(seed_records()))


def test_reset_while_others_read_and_write(store: SandboxStore) -> None:
    stop = threading.Event()
    problems: list[str] = []

    def work() -> None:
        while not stop.is_set():
            try:
                with store.write() as session:
                    session.advance_clock()
                with store.read() as session:
                    if len(session.all(Ticket)) != 16:
                        problems.append("half a store")
            except Exception as error:
                problems.append(repr(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        reset_sandbox(store.path)
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


def test_a_read_sees_one_moment(store: SandboxStore) -> None:
    with store.read() as session:
        before = session.organization().now
        with store.write() as other:
            other.advance_clock()
        assert session.organization().now == before
    with store.read() as session:
        assert session.organization().now > before


def write_file(path: Path, script: str) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path.read_bytes()


def to_format_1(path: Path) -> None:
    """Gives the records the kinds and keys that they had in files of format 1."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            UPDATE record SET kind = 'Company', key = 'company' WHERE kind = 'Organization';
            UPDATE record SET kind = 'Person' WHERE kind = 'Employee';
            UPDATE record SET kind = 'Repository' WHERE kind = 'GithubRepository';
            PRAGMA user_version = 1;
            """
        )


def test_a_file_of_format_1_is_migrated_with_its_changes(store: SandboxStore) -> None:
    with store.write() as session:
        session.put(Employee(login="eve", name="Eve", role="Guest"))
        session.put(session.all(GithubRepository)[0].replace(name="added"))
        now = session.advance_clock()
    to_format_1(store.path)
    with store.read() as session:
        assert session.find(Employee, "eve") is not None
        assert session.find(GithubRepository, "acme/added") is not None
        assert session.organization().now == now
    seeded = set(_unhashable_aside(seed_records()))
    assert seeded < everything(store)
    assert len(everything(store)) == len(seeded) + 2


def test_processes_that_find_format_1_migrate_it_once(store: SandboxStore) -> None:
    with store.read():
        pass
    to_format_1(store.path)
    assert len(set(processes(3, store.path))) == 15


def test_a_file_of_a_newer_format_is_refused_and_reset_replaces_it(store: SandboxStore) -> None:
    newer = f"CREATE TABLE record (body TEXT); PRAGMA user_version = {FORMAT + 1};"
    before = write_file(store.path, newer)
    with pytest.raises(SandboxError) as raised, store.read():
        pass
    assert str(raised.value) == (
        f"The sandbox file {store.path} was written by a newer version of this product (format {FORMAT + 1}; this "
        f"version reads up to {FORMAT}). Update the product, choose another directory with DATA_DIR, or replace the "
        "contents with the sample data: `platform-engineer sandbox reset`."
    )
    assert store.path.read_bytes() == before
    reset_sandbox(store.path)
    assert everything(store) == set(_unhashable_aside(seed_records()))


@pytest.mark.parametrize(
    "script",
    ["CREATE TABLE invoice (number INTEGER);", "PRAGMA user_version = 1;", "PRAGMA user_version = -1;"],
    ids=["other-tables", "no-tables", "negative"],
)
def test_a_database_of_another_program_is_refused(store: SandboxStore, script: str) -> None:
    before = write_file(store.path, script)
    with pytest.raises(SandboxError, match="is a database of another program") as raised, store.write():
        pass
    assert str(store.path) in str(raised.value)
    assert store.path.read_bytes() == before


def test_a_file_that_is_no_database_is_named_and_reset_replaces_it(tmp_path: Path) -> None:
    path = sandbox_path(tmp_path)
    path.write_text("this is not a database, whatever its name says" * 10)
    with pytest.raises(SandboxError, match="sandbox reset") as raised, SandboxStore(path).read():
        pass
    assert str(path) in str(raised.value)
    reset_sandbox(path)
    assert everything(SandboxStore(path))


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = sandbox_path(tmp_path / "file")
    with pytest.raises(SandboxError, match="cannot be used"), SandboxStore(path).read():
        pass
    with pytest.raises(SandboxError, match="could not be reset"):
        reset_sandbox(path)
