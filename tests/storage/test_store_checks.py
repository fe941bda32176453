"""The checks of the store of conversations: packages, addresses, the doctor's row."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_platform_engineering.settings import SettingsError, load_settings
from ai_platform_engineering.storage.checkpoints.stores import check_store, check_up_conversations, store_address
from tests.ports import reserved_port
from tests.storage.stores import SERVERS, Store, store_of

pytest_plugins = ("tests.services.fixtures",)

SECRET = "hunter2hunter2"
ADDRESSES = {
    "postgres": ("LANGGRAPH_CHECKPOINT_POSTGRES_DSN", f"postgresql://me:{SECRET}@127.0.0.1:%s/talks"),
    "mongodb": ("LANGGRAPH_CHECKPOINT_MONGODB_URI", f"mongodb://me:{SECRET}@127.0.0.1:%s/talks"),
    "redis": ("LANGGRAPH_CHECKPOINT_REDIS_URL", f"redis://me:{SECRET}@127.0.0.1:%s/0"),
}
PACKAGES = {
    "postgres": "langgraph.checkpoint.postgres.aio",
    "mongodb": "langgraph.checkpoint.mongodb",
    "redis": "langgraph.checkpoint.redis.aio",
}


@pytest.fixture(params=("sqlite", "memory", *SERVERS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with store_of(request.param, tmp_path, request) as found:
        yield found


@pytest.mark.parametrize("kind", SERVERS)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, address = ADDRESSES[kind]
    monkeypatch.delitem(sys.modules, f"ai_platform_engineering.storage.checkpoints.{kind}_saver", raising=False)
    monkeypatch.setitem(sys.modules, PACKAGES[kind], None)
    with pytest.raises(SettingsError) as refused:
        check_store(load_settings({variable: address % 1}, None))
    sentence = f"LANGGRAPH_CHECKPOINT_TYPE={kind} needs langgraph-checkpoint-{kind}, which is not installed: "
    assert str(refused.value).startswith(f"{sentence}run `make setup EXTRAS={kind}` in the checkout")


@pytest.mark.parametrize("kind", SERVERS)
def test_an_address_that_cannot_be_parsed_is_refused_without_its_password(kind: str) -> None:
    pytest.importorskip(PACKAGES[kind])
    variable, address = ADDRESSES[kind]
    with pytest.raises(SettingsError, match=f"{variable} is not the address of") as refused:
        store_address(load_settings({variable: address.replace(SECRET, f"{SECRET}/@:x") % "port"}, None))
    assert SECRET not in str(refused.value)


@pytest.mark.long
@pytest.mark.parametrize("kind", SERVERS)
async def test_the_doctor_reports_a_server_that_is_not_there(kind: str) -> None:
    pytest.importorskip(PACKAGES[kind])
    variable, address = ADDRESSES[kind]
    with reserved_port() as port:
        found = await check_up_conversations(load_settings({variable: address % port}, None))
    assert (found.kind, found.reachable) == (kind, False)
    assert f"127.0.0.1:{port}" in found.where
    assert f"Check that the server is running, and the host, user and password in {variable}." in str(found.problem)
    assert SECRET not in repr(found)


async def test_the_doctor_reports_a_store_that_can_be_used(store: Store) -> None:
    found = await check_up_conversations(store.settings())
    reachable = None if store.kind in {"sqlite", "memory"} else True
    assert (found.kind, found.reachable, found.problem) == (store.kind, reachable, None)
    assert not (Path(store.environ["DATA_DIR"]) / "conversations.db").exists()


async def test_the_doctor_reports_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "conversations.db").write_bytes(b"no database" * 1000)
    found = await check_up_conversations(load_settings({"DATA_DIR": str(tmp_path)}, None))
    assert found.reachable is False
    assert "file is not a database" in str(found.problem)


async def test_redis_without_modules_is_reported(tmp_path: Path) -> None:
    from tests.services.redis import redis_server, redis_url

    with redis_server(modules=False) as server:
        environ = {"DATA_DIR": str(tmp_path), "LANGGRAPH_CHECKPOINT_REDIS_URL": redis_url(server)}
        found = await check_up_conversations(load_settings(environ, None))
    assert "it has no JSON and Search modules. Use Redis 8 or Redis Stack" in str(found.problem)


def test_options_in_the_address_of_a_mongodb_replace_the_defaults() -> None:
    pytest.importorskip("pymongo")
    from ai_platform_engineering.storage.servers.mongodb import mongodb_client

    with mongodb_client("mongodb://127.0.0.1/?serverselectiontimeoutms=500") as client:
        assert client.options.server_selection_timeout == 0.5
        assert client.options.pool_options.connect_timeout == 3
        assert client.codec_options.tz_aware
