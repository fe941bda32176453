"""The contracts of `compat/checkpoint_postgres.py`, `checkpoint_mongodb.py` and `checkpoint_redis.py`: how the savers
store checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, CheckpointMetadata, empty_checkpoint
from langgraph.types import Interrupt
from psycopg import sql

from ai_platform_engineering.compat import checkpoint_postgres
from ai_platform_engineering.compat.checkpoint_postgres import ALWAYS
from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL, DependencyChangedError
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


async def test_a_checkpoint_is_stored_as_the_postgres_saver_stores_it(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    values = {"messages": [HumanMessage("hello", id="m")], "number": 1, "flag": True, "none": None, "name": "x"}
    versions: ChannelVersions = {channel: f"{number:032}.5" for number, channel in enumerate(values)}
    checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}
    writes = [("messages", [AIMessage("hi", id="a")]), ("number", 2)]
    interrupt = [(INTERRUPT_CHANNEL, [Interrupt("?", id="i")])]
    with store_of("postgres", tmp_path, request) as store:
        address = store.environ["LANGGRAPH_CHECKPOINT_POSTGRES_DSN"]
        async with AsyncPostgresSaver.from_conn_string(address) as theirs:
            await theirs.setup()
            for thread, is_ours in (("ours", True), ("theirs", False)):
                configurable = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": "parent", "__secret": 1}
                config: RunnableConfig = {"configurable": configurable, "metadata": {"user": "me"}}
                source: CheckpointMetadata = {"source": "loop", "step": 1}
                at: RunnableConfig = {"configurable": {**configurable, "checkpoint_id": checkpoint["id"]}}
                for _ in range(2):  # an operation may be repeated
                    if is_ours:
                        put = (theirs.conn, theirs.serde)
                        await checkpoint_postgres.put(*put, config, checkpoint, source, versions, ALWAYS)
                        await checkpoint_postgres.put_writes(*put, at, writes, "task", "path", ALWAYS)
                        await checkpoint_postgres.put_writes(*put, at, interrupt, "other", "path", ALWAYS)
                    else:
                        await theirs.aput(config, checkpoint, source, versions)
                        await theirs.aput_writes(at, writes, "task", "path")
                        await theirs.aput_writes(at, interrupt, "other", "path")
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                rows = await (
                    await theirs.conn.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)))
                ).fetchall()
                stored = {
                    thread: sorted(str({**row, "thread_id": ""}) for row in rows if row["thread_id"] == thread)
                    for thread in ("ours", "theirs")
                }
                assert stored["ours"] == stored["theirs"] != []
            found = await theirs.aget_tuple({"configurable": {"thread_id": "ours"}})
            assert found is not None
            assert found.checkpoint["channel_values"] == values


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
