from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from ai_platform_engineering.sandbox.records import Person, Record, Ticket
from ai_platform_engineering.sandbox.seed import seed_records
from ai_platform_engineering.sandbox.world import World, WorldError, reset_world, world_path

ADD_TICKETS = """
import sys
from pathlib import Path
from ai_platform_engineering.sandbox.records import Ticket
from ai_platform_engineering.sandbox.world import World

world = World(Path(sys.argv[1]))
for _ in range(5):
    with world.write() as session:
        tickets = session.all(Ticket)
        number = 1 + max(ticket.number for ticket in tickets if ticket.project == "SHOP")
        now = session.tick()
        session.put(tickets[0].but(project="SHOP", number=number, created=now, updated=now))
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


def everything(world: World) -> set[Record]:
    kinds = {type(record) for record in seed_records()}
    with world.read() as session:
        return {record for kind in kinds for record in _unhashable_aside(session.all(kind))}


def _unhashable_aside(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.key != "company"]


def test_a_new_file_holds_the_seed(world: World) -> None:
    assert everything(world) == set(_unhashable_aside(seed_records()))


def test_processes_that_start_at_once_seed_once_and_never_share_a_number(world: World) -> None:
    numbers = [int(number) for number in processes(4, world.path)]
    assert sorted(numbers) == list(range(120, 140))
    with world.read() as session:
        assert len(session.all(Ticket)) == 16 + 20
        assert session.company().now.isoformat() == "2026-04-08T09:50:00+00:00"
    with sqlite3.connect(world.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_change_that_raises_leaves_nothing(world: World) -> None:
    def change() -> None:
        with world.write() as session:
            session.put(Person(login="eve", name="Eve", role="Guest"))
            session.tick()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        change()
    assert everything(world) == set(_unhashable_aside(seed_records()))
    with world.read() as session:
        assert session.company().now.minute == 30


def test_it_survives_a_restart_and_reset_brings_the_seed_back(world: World) -> None:
    with world.write() as session:
        session.put(Person(login="eve", name="Eve", role="Guest"))
    again = World(world.path)
    with again.read() as session:
        assert session.find(Person, "eve") is not None
    reset_world(world.path)
    assert everything(again) == set(_unhashable_aside(seed_records()))


def test_reset_while_others_read_and_write(world: World) -> None:
    stop = threading.Event()
    problems: list[str] = []

    def work() -> None:
        while not stop.is_set():
            try:
                with world.write() as session:
                    session.tick()
                with world.read() as session:
                    if len(session.all(Ticket)) != 16:
                        problems.append("half a world")
            except Exception as error:
                problems.append(repr(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        reset_world(world.path)
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


def test_a_read_sees_one_moment(world: World) -> None:
    with world.read() as session:
        before = session.company().now
        with world.write() as other:
            other.tick()
        assert session.company().now == before
    with world.read() as session:
        assert session.company().now > before


def test_a_file_of_another_format_is_seeded_anew(world: World) -> None:
    world.path.parent.mkdir(parents=True)
    connection = sqlite3.connect(world.path)
    connection.executescript("CREATE TABLE record (old TEXT); PRAGMA user_version = 99;")
    connection.close()
    assert everything(world) == set(_unhashable_aside(seed_records()))


def test_a_file_that_is_no_database_is_named_and_reset_replaces_it(tmp_path: Path) -> None:
    path = world_path(tmp_path)
    path.write_text("this is not a database, whatever its name says" * 10)
    with pytest.raises(WorldError, match="sandbox reset") as raised, World(path).read():
        pass
    assert str(path) in str(raised.value)
    reset_world(path)
    assert everything(World(path))


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = world_path(tmp_path / "file")
    with pytest.raises(WorldError, match="cannot be used"), World(path).read():
        pass
    with pytest.raises(WorldError, match="could not be reset"):
        reset_world(path)
