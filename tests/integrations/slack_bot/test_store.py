from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import (
    BotStore,
    SharedBotStore,
    StoredRun,
    ThreadSession,
    open_store,
)
from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.store.sqlite import SqliteBotStore
from ai_platform_engineering.integrations.slack_bot.store.values import EVENT_SECONDS
from ai_platform_engineering.settings import load_settings

pytest_plugins = ("tests.services.fixtures",)

HERE = ThreadPlace("T1", "C1", "1700000000.000100")
THERE = ThreadPlace("T1", "C1", "1700000000.000200")
DAY = 86_400.0


def a_run(name: str, place: ThreadPlace = HERE, **changes: Any) -> StoredRun:
    incoming = Incoming(place, "1700000000.000300", f"What is {name}?", SlackUser("T1", "U1"))
    return replace(StoredRun(name, incoming, f"context of {place.key}"), **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "slack.sqlite"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[BotStore]:
    match request.param:
        case "memory":
            opened: BotStore = MemoryStore()
        case "sqlite":
            opened = SqliteBotStore(path)
        case _:
            opened = in_postgres(request.getfixturevalue("database"))
    with closing(opened):
        yield opened


def in_postgres(database: str) -> BotStore:
    """A store whose bot is active."""
    settings = load_settings({"SLACK_SESSIONS": "postgres", "SLACK_SESSIONS_POSTGRES_DSN": database}, None)
    store = open_store(settings)
    assert isinstance(store, SharedBotStore)
    assert store.activate()
    return store


def test_an_event_is_heard_once(store: BotStore) -> None:
    assert [store.first_time(event, 1.0) for event in ("Ev1", "Ev2", "Ev1", "Ev1")] == [True, True, False, False]


def test_a_thread_keeps_its_conversation(store: BotStore) -> None:
    assert store.session(HERE) is None
    store.put_session(ThreadSession(HERE, "context-1", 10.0))
    store.put_session(ThreadSession(THERE, "context-2", 11.0))
    store.put_session(ThreadSession(HERE, "context-1", 12.5))
    assert store.session(HERE) == ThreadSession(HERE, "context-1", 12.5)
    assert store.session(THERE) == ThreadSession(THERE, "context-2", 11.0)
    assert store.session(replace(HERE, team="T2")) is None


def test_a_run_comes_back_as_it_was_put(store: BotStore) -> None:
    incoming = Incoming(
        HERE, "1700000000.000300", "Wie geht's? 🚀 \x00 \ud83d", SlackUser("T2", "B1", is_bot=True), True, "Be brief."
    )
    run = StoredRun("run-1", incoming, "context", "task", "trace", 17, '{"text": "ö \ud83d"}', False, 1700000000.25)
    store.put_run(run)
    assert store.run("run-1") == run
    changed = replace(run, task_id="task-2", seen=18, state="", done=True)
    store.put_run(changed)
    assert store.run("run-1") == changed
    assert store.run("run-2") is None


def test_the_newest_run_of_a_task(store: BotStore) -> None:
    store.put_run(a_run("second", task_id="task", begun=2.0))
    store.put_run(a_run("first", task_id="task", begun=1.0))
    store.put_run(a_run("other", task_id="other", begun=3.0))
    store.put_run(a_run("not yet a task", begun=4.0))
    assert store.run_of_task("task") == a_run("second", task_id="task", begun=2.0)
    assert store.run_of_task("gone") is None
    assert store.run_of_task("") is None
    store.put_run(a_run("first", task_id="changed", begun=1.0))
    assert store.run_of_task("changed") == a_run("first", task_id="changed", begun=1.0)


def test_open_runs_are_told_oldest_first(store: BotStore) -> None:
    for name, place, begun in (("c", HERE, 3.0), ("a", HERE, 1.0), ("b", THERE, 2.0), ("d", HERE, 3.0)):
        store.put_run(a_run(name, place, begun=begun))
    store.put_run(a_run("c", begun=3.0, seen=9))
    assert [run.id for run in store.open_runs()] == ["a", "b", "c", "d"]
    assert [run.id for run in store.open_runs(HERE)] == ["a", "c", "d"]
    store.put_run(a_run("a", begun=1.0, done=True))
    assert [run.id for run in store.open_runs(HERE)] == ["c", "d"]
    assert store.open_runs(replace(HERE, channel="C2")) == []


def test_the_latest_run_of_a_thread_may_be_done(store: BotStore) -> None:
    store.put_run(a_run("a", begun=1.0))
    store.put_run(a_run("b", begun=2.0))
    store.put_run(a_run("c", begun=2.0, done=True))
    store.put_run(a_run("d", THERE, begun=3.0))
    latest = store.latest_run(HERE)
    assert latest is not None
    assert latest.id == "c"
    assert store.latest_run(replace(HERE, team="T2")) is None


def test_what_is_old_is_forgotten_but_nothing_undelivered(store: BotStore) -> None:
    now = 100 * DAY
    store.put_run(a_run("old and open", begun=0.0))
    store.put_run(a_run("old", THERE, begun=60 * DAY, done=True))
    store.put_run(a_run("young", THERE, begun=90 * DAY, done=True))
    gone = replace(HERE, channel="C2")
    for place, last_used in ((HERE, 1.0), (THERE, 90 * DAY), (gone, 60 * DAY)):
        store.put_session(ThreadSession(place, "context", last_used))
    assert store.prune(now, 30 * DAY) is False
    assert [name for name in ("old and open", "old", "young") if store.run(name)] == ["old and open", "young"]
    assert [place for place in (HERE, THERE, gone) if store.session(place)] == [HERE, THERE]


def test_events_are_remembered_for_a_day(store: BotStore) -> None:
    now = 100 * DAY
    store.first_time("before yesterday", now - EVENT_SECONDS - 1)
    store.first_time("today", now - EVENT_SECONDS + 1)
    store.prune(now, 30 * DAY)
    assert store.first_time("before yesterday", now)
    assert not store.first_time("today", now)


def test_however_much_is_old_it_is_forgotten_in_the_end(store: BotStore) -> None:
    for number in range(120):
        store.put_run(a_run(f"run-{number}", done=True))
        store.put_session(ThreadSession(replace(HERE, thread_ts=str(number)), "context", 0.0))
        store.first_time(f"Ev{number}", 0.0)
    helpings = 1
    while store.prune(100 * DAY, DAY):
        helpings += 1
    assert helpings < 5
    assert not any(store.run(f"run-{number}") for number in range(120))
    assert not any(store.session(replace(HERE, thread_ts=str(number))) for number in range(120))
    assert all(store.first_time(f"Ev{number}", 0.0) for number in range(120))


@pytest.mark.parametrize(("chosen", "files"), [("memory", set()), ("sqlite", {"slack.sqlite", "slack.sqlite.lock"})])
def test_the_settings_choose_the_store(tmp_path: Path, chosen: str, files: set[str]) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SLACK_SESSIONS": chosen}
    with closing(open_store(load_settings(environ, None))) as store:
        store.put_run(a_run("run"))
        assert store.run("run") == a_run("run")
    assert {file.name for file in tmp_path.iterdir()} == files
