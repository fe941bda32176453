from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.integrations.slack_bot.store import BotStoreError, ThreadSession
from ai_platform_engineering.integrations.slack_bot.store.sqlite import SqliteBotStore
from ai_platform_engineering.utils.errors import ReadableError
from tests.integrations.slack_bot.test_store import HERE, a_run

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "slack.sqlite"


@pytest.fixture
def reopened(path: Path) -> Iterator[Callable[[], SqliteBotStore]]:
    """Ends the bot that has the file, if there is one, and starts the next."""
    stores: list[SqliteBotStore] = []

    def reopen() -> SqliteBotStore:
        if stores:
            stores.pop().close()
        stores.append(SqliteBotStore(path))
        return stores[0]

    yield reopen
    for store in stores:
        store.close()


def test_everything_is_there_after_a_restart(reopened: Callable[[], SqliteBotStore]) -> None:
    store = reopened()
    run = a_run("run", task_id="task", state="s" * 200_000, seen=4, begun=5.0)
    store.put_run(run)
    store.put_run(a_run("done", begun=6.0, done=True))
    store.put_session(ThreadSession(HERE, "context", 1.0))
    assert store.first_time("Ev1", 1.0)
    store = reopened()
    assert store.open_runs() == [run]
    assert store.run_of_task("task") == run
    assert store.latest_run(HERE) == a_run("done", begun=6.0, done=True)
    assert store.session(HERE) == ThreadSession(HERE, "context", 1.0)
    assert not store.first_time("Ev1", 2.0)


def test_only_the_owner_may_read_the_file(path: Path) -> None:
    before = os.umask(0o022)
    try:
        with closing(SqliteBotStore(path)) as store:
            store.put_run(a_run("run"))
            files = [file for file in path.parent.iterdir() if ".lock" not in file.name]
            modes = {stat.S_IMODE(file.stat().st_mode) for file in files}
    finally:
        os.umask(before)
    assert len(files) == 3
    assert modes == {0o600}


def a_process(code: str, path: Path) -> subprocess.Popen[str]:
    begin = (
        "import resource, sys; from pathlib import Path; from tests.integrations.slack_bot.test_store_file import *\n"
        "path = Path(sys.argv[1])\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", begin + code, path],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


WRITING = """
store = SqliteBotStore(path)
for number in range(1_000_000):
    store.put_run(a_run("run", seen=number, state=f"{number} " * 10_000))
    assert store.first_time(f"Ev{number}", 0.0)
    print(number, flush=True)
"""


def test_a_killed_bot_has_kept_all_that_it_was_told_and_frees_the_file(path: Path) -> None:
    with a_process(WRITING, path) as process:
        assert process.stdout is not None
        for _ in range(50):
            said = process.stdout.readline()
        assert said == "49\n"
        with pytest.raises(BotStoreError, match="another Slack bot"):
            SqliteBotStore(path)
        process.send_signal(signal.SIGKILL)
        last = int((said + process.stdout.read()).rsplit(maxsplit=1)[-1])
    with closing(SqliteBotStore(path)) as store:
        run = store.run("run")
        assert run is not None
        # It may have been killed after writing and before saying so.
        assert run.seen in {last, last + 1}
        assert run.state == f"{run.seen} " * 10_000
        assert not any(store.first_time(f"Ev{number}", 0.0) for number in range(last + 1))


def test_a_second_bot_is_refused_with_the_way_out(path: Path) -> None:
    with closing(SqliteBotStore(path)) as store:
        with a_process("SqliteBotStore(path)", path) as process:
            _, said = process.communicate(timeout=90)
        assert process.returncode == 1
        assert f"{path} is in use by another Slack bot. Stop that one, or give this one" in said
        assert "DATA_DIR" in said
        # The first one is not disturbed.
        store.put_run(a_run("run"))
        assert store.run("run") is not None


def refusal(path: Path) -> str:
    with pytest.raises(ReadableError) as refused:
        SqliteBotStore(path)
    said = str(refused.value)
    assert str(path) in said
    assert "DATA_DIR" in said
    return said


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    content = b"this is not a database, whatever its name says" * 100
    path.write_bytes(content)
    assert "file is not a database. Stop the bot and move the file away" in refusal(path)
    assert path.read_bytes() == content


def test_a_file_of_a_newer_version(path: Path) -> None:
    SqliteBotStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "a newer version of the Slack bot (format 99; this one knows 1). Update" in refusal(path)


def test_a_database_of_something_else(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
    assert "is the database of another program" in refusal(path)


def test_a_damaged_file_is_named_when_it_is_found_out(path: Path) -> None:
    with closing(SqliteBotStore(path)) as store:
        for number in range(100):
            store.put_run(a_run(f"run-{number}", state="x" * 20_000))
    content = path.read_bytes()
    middle = len(content) // 4
    path.write_bytes(content[:middle] + b"\xff" * middle * 3)
    with (
        closing(SqliteBotStore(path)) as store,
        pytest.raises(BotStoreError, match=r"malformed.*move the file away") as said,
    ):
        store.open_runs()
    assert str(path) in str(said.value)


def test_a_run_that_cannot_be_read(path: Path) -> None:
    with closing(SqliteBotStore(path)) as store:
        store.put_run(a_run("run"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE run SET incoming = '{}'")
    with (
        closing(SqliteBotStore(path)) as store,
        pytest.raises(BotStoreError, match=r"cannot read. Stop the bot") as said,
    ):
        store.run("run")
    assert str(path) in str(said.value)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    said = refusal(tmp_path / "data" / "slack.sqlite")
    assert "File exists" in said or "Not a directory" in said
    assert "SLACK_SESSIONS=memory" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_directory_that_cannot_be_written(path: Path, mode: int) -> None:
    path.parent.mkdir()
    path.parent.chmod(mode)
    try:
        assert "Check that the directory can be written" in refusal(path)
    finally:
        path.parent.chmod(0o700)


def test_a_full_file_system_is_told_as_such(path: Path) -> None:
    with closing(SqliteBotStore(path)) as store:
        store._file.connection.execute("PRAGMA max_page_count = 20")
        with pytest.raises(BotStoreError, match=r"is full. Make room on the disk.*DATA_DIR") as said:
            store.put_run(a_run("run", state="x" * 1_000_000))
    assert str(path) in str(said.value)


FULL_DISK = """
store = SqliteBotStore(path)
store.put_run(a_run("run", state="kept"))
size = path.with_name(path.name + "-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
for attempt in (lambda: store.put_run(a_run("run", state="x" * 100_000)), lambda: store.first_time("Ev1", 0.0)):
    try:
        attempt()
    except BotStoreError as error:
        print(error)
print(store.run("run").state)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(store.first_time("Ev1", 0.0))
store.put_run(a_run("run", state="there is room again"))
store.close()
print(SqliteBotStore(path).run("run").state)
"""


def test_a_full_disk_loses_nothing_that_was_kept_and_is_forgiven(path: Path) -> None:
    with a_process(FULL_DISK, path) as process:
        output, trouble = process.communicate(timeout=90)
    assert process.returncode == 0, trouble
    *refused, kept, first_time, later = output.splitlines()
    assert len(refused) == 2
    assert all(f"{path} cannot be used by the Slack bot: " in said and "has room" in said for said in refused)
    assert (kept, first_time, later) == ("kept", "True", "there is room again")


def test_a_call_after_the_end_does_not_blame_the_file(path: Path) -> None:
    store = SqliteBotStore(path)
    store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        store.first_time("Ev1", 0.0)
