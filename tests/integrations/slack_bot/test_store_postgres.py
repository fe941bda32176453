"""The store in Postgres: one active bot, takeover, and the errors of its server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, LiteralString

import psycopg
import pytest

from ai_platform_engineering.integrations.slack_bot.store import BotStoreError, ThreadSession, open_store
from ai_platform_engineering.integrations.slack_bot.store import postgres as postgres_store
from ai_platform_engineering.integrations.slack_bot.store.postgres import BotStoreAddress, PostgresBotStore
from ai_platform_engineering.settings import SettingsError, load_settings
from tests.integrations.slack_bot.test_store import HERE, a_run
from tests.services.environment import ROOT
from tests.services.postgres import PASSWORD, PostgresServer, disconnect_all, new_database, postgres_server

pytest_plugins = ("tests.services.fixtures",)

OpenStore = Callable[[], PostgresBotStore]


@pytest.fixture
def lost() -> list[BotStoreError]:
    """Why bots were told to stop."""
    return []


@pytest.fixture
def open_bot(database: str, lost: list[BotStoreError]) -> Iterator[OpenStore]:
    opened: list[PostgresBotStore] = []

    def another() -> PostgresBotStore:
        opened.append(PostgresBotStore(BotStoreAddress(database), lost.append))
        return opened[-1]

    yield another
    for store in opened:
        store.close()


def activated(store: PostgresBotStore) -> bool:
    """Waits, because the server notices the end of a process a moment later."""
    deadline = time.monotonic() + 60
    while not store.activate():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return True


def test_everything_is_there_on_another_machine(open_bot: OpenStore) -> None:
    first = open_bot()
    assert first.activate()
    run = a_run("run", task_id="task", state="s" * 200_000, seen=4, begun=5.0)
    first.put_run(run)
    first.put_session(ThreadSession(HERE, "context", 1.0))
    assert first.first_time("Ev1", 1.0)
    first.close()
    second = open_bot()
    assert activated(second)
    assert second.open_runs() == [run]
    assert second.session(HERE) == ThreadSession(HERE, "context", 1.0)
    assert not second.first_time("Ev1", 2.0)


def test_a_second_bot_waits_and_can_write_nothing(open_bot: OpenStore) -> None:
    first, second = open_bot(), open_bot()
    assert first.activate()
    assert not second.activate()
    with pytest.raises(BotStoreError, match="is used by another Slack bot"):
        second.put_run(a_run("run"))
    first.put_run(a_run("run"))


WRITING = """
import sys
from tests.integrations.slack_bot.test_store import a_run, in_postgres
store = in_postgres(sys.argv[1])
for number in range(1_000_000):
    store.put_run(a_run("run", seen=number, state=f"{number} " * 10_000))
    assert store.first_time(f"Ev{number}", 0.0)
    print(number, flush=True)
"""


@pytest.mark.process
def test_a_killed_bot_has_stored_all_that_it_reported_and_another_takes_over(
    database: str, open_bot: OpenStore
) -> None:
    store = open_bot()
    with subprocess.Popen(
        [sys.executable, "-c", WRITING, database],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for _ in range(50):
            said = process.stdout.readline()
        assert not store.activate()
        process.kill()
        last = int((said + process.stdout.read()).rsplit(maxsplit=1)[-1])
    assert activated(store)
    run = store.run("run")
    assert run is not None
    # It may have been killed after writing and before saying so.
    assert run.seen in {last, last + 1}
    assert run.state == f"{run.seen} " * 10_000
    assert not any(store.first_time(f"Ev{number}", 0.0) for number in range(last + 1))


def test_a_bot_whose_connection_was_cut_goes_on_if_it_is_still_alone(
    database: str, open_bot: OpenStore, lost: list[BotStoreError]
) -> None:
    store = open_bot()
    assert store.activate()
    disconnect_all(database)
    assert store.first_time("Ev1", 1.0)
    disconnect_all(database)
    store.check()
    assert not open_bot().activate()
    assert lost == []


def test_a_bot_that_was_replaced_stops_before_it_writes(
    database: str, open_bot: OpenStore, lost: list[BotStoreError]
) -> None:
    first, second = open_bot(), open_bot()
    assert first.activate()
    disconnect_all(database)
    assert activated(second)
    with pytest.raises(BotStoreError, match="has taken over, so this one stops"):
        first.put_run(a_run("run"))
    assert len(lost) == 1
    with pytest.raises(BotStoreError, match="is used by another Slack bot"):
        first.put_run(a_run("run"))
    assert second.run("run") is None


def test_a_repeated_statement_does_not_take_its_own_row_for_another_one(database: str, open_bot: OpenStore) -> None:
    store = open_bot()
    assert store.activate()
    connection = store._connection
    assert connection is not None

    class Cut:
        """A connection that is lost after its first statement was committed."""

        closed = True

        def execute(self, *arguments: Any) -> None:
            connection.execute(*arguments)
            connection.close()
            raise psycopg.OperationalError("the connection is lost")

        def close(self) -> None:
            pass

    store._connection = Cut()  # type: ignore[assignment]
    assert store.first_time("Ev1", 1.0)
    assert not store.first_time("Ev1", 2.0)


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.mark.long
def test_a_bot_stops_when_its_lock_is_not_confirmed_for_long(
    own_server: PostgresServer, lost: list[BotStoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        new_database(own_server.address()) as database,
        closing(PostgresBotStore(BotStoreAddress(database), lost.append)) as store,
    ):
        assert store.activate()
        own_server.stop()
        try:
            with pytest.raises(BotStoreError, match="Check that the server is running"):
                store.check()
            assert lost == []
            monkeypatch.setattr(postgres_store, "MAX_UNCONFIRMED_SECONDS", 0.0)
            with pytest.raises(BotStoreError):
                store.check()
            assert len(lost) == 1
        finally:
            own_server.start()
        store.check()


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE slack.format SET number = 99", r"newer version .*format 99; this version reads 1.*Update"),
        ("DROP TABLE slack.format", "schema slack was created by another program"),
    ],
)
def test_tables_of_another_format_are_left_alone(
    database: str, open_bot: OpenStore, statement: LiteralString, sentence: str
) -> None:
    store = open_bot()
    assert store.activate()
    store.put_run(a_run("run"))
    with psycopg.connect(database) as connection:
        connection.execute(statement)
    with pytest.raises(BotStoreError, match=sentence) as said:
        open_bot()
    assert "SLACK_SESSIONS_POSTGRES_DSN" in str(said.value)
    assert store.run("run") is not None


def test_a_run_that_cannot_be_read(database: str, open_bot: OpenStore) -> None:
    store = open_bot()
    assert store.activate()
    store.put_run(a_run("run"))
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE slack.run SET incoming = '{}'")
    with pytest.raises(BotStoreError, match="a run that this version of the Slack bot cannot read"):
        store.run("run")


def test_the_address_is_checked_and_never_shown_with_its_password() -> None:
    with pytest.raises(SettingsError, match="SLACK_SESSIONS=postgres needs SLACK_SESSIONS_POSTGRES_DSN"):
        load_settings({"SLACK_SESSIONS": "postgres"}, None)
    environ = {"SLACK_SESSIONS": "postgres", "SLACK_SESSIONS_POSTGRES_DSN": f"postgresql://a:{PASSWORD}@127.0.0.1:9/b"}
    with pytest.raises(BotStoreError, match=r"127\.0\.0\.1:9/b cannot be used by the Slack bot") as said:
        open_store(load_settings(environ, None))
    assert PASSWORD not in str(said.value)
