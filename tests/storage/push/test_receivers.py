"""The stores of the receivers of push notifications, one contract for all."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from a2a.types.a2a_pb2 import AuthenticationInfo, TaskPushNotificationConfig

from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.storage.push.receiver_file import ReceiverFile
from ai_platform_engineering.storage.push.receivers import Receiver, ReceiverStore, ReceiverStoreError
from ai_platform_engineering.utils.a2a_common.server.push_configs import open_receivers

pytest_plugins = ("tests.services.fixtures",)


def a_receiver(task_id: str, config_id: str = "a", owner: str = "jane", delivered: int = 0) -> Receiver:
    config = TaskPushNotificationConfig(
        task_id=task_id,
        id=config_id,
        url="https://example.org/hook?key=1",
        token="t0ken",
        authentication=AuthenticationInfo(scheme="Bearer", credentials="cr3dentials"),
    )
    return Receiver(owner, config, delivered, created_ns=1000)


def in_postgres(database: str) -> Settings:
    return load_settings({"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": database}, None)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReceiverStore]:
    if request.param == "postgres":
        settings = in_postgres(request.getfixturevalue("database"))
    else:
        settings = load_settings({"EVENT_LOG": request.param, "DATA_DIR": str(tmp_path)}, None)
    with closing(open_receivers(settings)) as opened:
        yield opened


def test_a_receiver_comes_back_as_it_was_put(store: ReceiverStore) -> None:
    receiver = a_receiver("t1", delivered=3)
    assert store.get(receiver.key) is None
    store.put(receiver)
    assert store.get(receiver.key) == receiver
    assert store.of_task("t1") == [receiver]
    assert store.of_task("t2") == []


def test_a_changed_receiver_misses_no_event(store: ReceiverStore) -> None:
    receiver = a_receiver("t1", delivered=3)
    store.put(receiver)
    changed = replace(receiver, config=TaskPushNotificationConfig(task_id="t1", id="a", url="https://b.example"))
    store.put(replace(changed, delivered=8, created_ns=2000))
    assert store.of_task("t1") == [changed]


def test_a_receiver_is_finished_when_it_got_the_end_of_its_task(store: ReceiverStore) -> None:
    receivers = [a_receiver("t1"), a_receiver("t1", "b"), a_receiver("t2", owner="omar")]
    for receiver in receivers:
        store.put(receiver)
    store.mark(receivers[0].key, 7, finished=False)
    store.mark(receivers[1].key, 9, finished=True)
    assert sorted(store.unfinished()) == [receivers[0].key, receivers[2].key]
    assert [receiver.delivered for receiver in store.of_task("t1")] == [7, 9]
    assert sorted(store.keys(["t1", "t3"])) == [receivers[0].key, receivers[1].key]


def test_receivers_are_deleted_by_task_owner_and_id(store: ReceiverStore) -> None:
    for owner in ("jane", "omar"):
        for config_id in ("a", "b"):
            store.put(a_receiver("t1", config_id, owner))
    store.delete("t1", "jane", "a")
    assert sorted(store.keys(["t1"])) == [("t1", "jane", "b"), ("t1", "omar", "a"), ("t1", "omar", "b")]
    store.delete("t1", "omar")
    assert store.keys(["t1"]) == [("t1", "jane", "b")]
    store.put(a_receiver("t2"))
    assert sorted(store.tasks(created_before_ns=1001)) == ["t1", "t2"]
    assert store.tasks(created_before_ns=1000) == []
    store.delete("t1")
    assert store.tasks(created_before_ns=1001) == ["t2"]


def test_the_credentials_of_a_receiver_are_not_shown() -> None:
    assert "cr3dentials" not in repr(a_receiver("t1"))
    assert "t0ken" not in repr(a_receiver("t1"))


def test_the_file_is_private_and_created_with_the_first_receiver(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)
    with closing(open_receivers(settings)) as store:
        assert store.unfinished() == []
        assert not (tmp_path / "push.db").exists()
        store.put(a_receiver("t1"))
        assert stat.S_IMODE((tmp_path / "push.db").stat().st_mode) == 0o600
        with closing(open_receivers(settings, "argocd")) as other:
            other.put(a_receiver("t2"))
            assert (tmp_path / "push-argocd.db").exists()
            assert other.tasks(9999) == ["t2"]
    with closing(open_receivers(settings)) as store:
        assert store.tasks(9999) == ["t1"]


def test_a_file_of_another_format_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "push.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(ReceiverStoreError, match=r"push\.db cannot be used .*format 7, not 1.*DATA_DIR"):
        ReceiverFile(path).unfinished()
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(ReceiverStoreError, match="not a database"):
        ReceiverFile(path).put(a_receiver("t1"))


def test_processes_share_receivers_and_claims_but_not_with_other_agents(database: str) -> None:
    settings = in_postgres(database)
    ours, theirs = open_receivers(settings), open_receivers(settings)
    agents = open_receivers(settings, "argocd")
    try:
        receiver = a_receiver("t1")
        ours.put(receiver)
        assert theirs.of_task("t1") == [receiver]
        assert agents.tasks(9999) == agents.unfinished() == agents.keys(["t1"]) == agents.of_task("t1") == []
        assert ours.claim(receiver.key)
        assert not theirs.claim(receiver.key)
        assert theirs.claim(a_receiver("t1", "b").key)
        ours.release(receiver.key)
        assert theirs.claim(receiver.key)
    finally:
        for store in (ours, theirs, agents):
            store.close()


def test_a_server_that_cannot_be_reached_is_named_without_its_password() -> None:
    store = open_receivers(in_postgres("postgresql://ann:hunter2@127.0.0.1:9/tasks"))
    with pytest.raises(ReceiverStoreError, match=r"127\.0\.0\.1:9/tasks cannot be used .*push notif") as said:
        store.unfinished()
    assert "hunter2" not in str(said.value)
