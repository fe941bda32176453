"""The contracts of `compat/checkpoint_postgres.py`, `checkpoint_mongodb.py` and `checkpoint_redis.py`: how the savers
store checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.compat.langgraph import DependencyChangedError
from ai_platform_engineering.storage.checkpoints.stores import store_address
from tests.storage.stores import SERVERS, store_of

pytest_plugins = ("tests.services.fixtures",)


async def opened(kind: str, folder: Path, request: pytest.FixtureRequest) -> None:
    with store_of(kind, folder, request) as store:
        address = store_address(store.settings())
        assert address is not None
        async with address.opened() as saver:
            await saver.ping()


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_installed_saver_stores_checkpoints_as_compat_expects(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    await opened(kind, tmp_path, request)


async def test_other_tables_of_the_postgres_saver_stop_the_start(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    setup = AsyncPostgresSaver.setup

    async def changed(self: Any) -> None:
        await setup(self)
        await self.conn.execute("ALTER TABLE checkpoint_writes RENAME COLUMN channel TO key")

    monkeypatch.setattr(AsyncPostgresSaver, "setup", changed)
    sentence = r"AsyncPostgresSaver's table checkpoint_writes lacks the columns \['channel'\].*checkpoint_postgres\.py"
    with pytest.raises(DependencyChangedError, match=sentence):
        await opened("postgres", tmp_path, request)


async def test_other_documents_of_the_mongodb_saver_stop_the_start(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = pytest.importorskip("langgraph.checkpoint.mongodb").MongoDBSaver
    put = saver.put_writes

    def changed(self: Any, *arguments: Any) -> None:
        put(self, *arguments)
        self.writes_collection.update_many({}, {"$rename": {"channel": "key"}})

    monkeypatch.setattr(saver, "put_writes", changed)
    with pytest.raises(DependencyChangedError, match=r"other fields than thread_id.*checkpoint_mongodb\.py"):
        await opened("mongodb", tmp_path, request)


async def test_other_keys_of_the_redis_saver_stop_the_start(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = pytest.importorskip("langgraph.checkpoint.redis.aio").AsyncRedisSaver
    monkeypatch.setattr(saver, "_make_redis_checkpoint_key", staticmethod(lambda *names: "|".join(names)))
    with pytest.raises(DependencyChangedError, match=r"other indexes or keys.*checkpoint_redis\.py"):
        await opened("redis", tmp_path, request)
