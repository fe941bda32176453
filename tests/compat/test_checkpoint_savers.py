"""The contracts of `compat/checkpoint_memory.py`, `checkpoint_sqlite.py` and `checkpoint_serializer.py`."""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Send

from ai_platform_engineering.compat import checkpoint_memory, checkpoint_serializer, checkpoint_sqlite
from ai_platform_engineering.compat.checkpoint_serializer import CheckpointSerializer
from ai_platform_engineering.compat.langgraph import DependencyChangedError
from ai_platform_engineering.storage.checkpoints.file_saver import FileSaver
from ai_platform_engineering.storage.checkpoints.memory_saver import MemorySaver

CHANGED = f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')} changed a part that compat/ uses"


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection


def test_the_tables_of_the_memory_saver_are_known() -> None:
    checkpoint_memory.check_tables()


def _renamed(name: str) -> type[InMemorySaver]:
    class Changed(InMemorySaver):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            table = getattr(self, name)
            self.__dict__[f"{name}_by_thread"] = table

        def put(self, *args: Any, **kwargs: Any) -> RunnableConfig:
            stored = super().put(*args, **kwargs)
            self.__dict__.pop(name)
            setattr(self, name, type(self.__dict__[f"{name}_by_thread"])())
            return stored

    return Changed


class OtherWrites(InMemorySaver):
    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, task_path)
        for written in self.writes.values():
            for key, (task, channel, value, _) in written.items():
                written[key] = (task, channel, value)  # type: ignore[assignment]


@pytest.mark.parametrize("changed", [_renamed("storage"), _renamed("blobs"), OtherWrites])
def test_other_tables_of_the_memory_saver_are_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, changed: type[InMemorySaver]
) -> None:
    monkeypatch.setattr(checkpoint_memory, "InMemorySaver", changed)
    sentence = r"langgraph-checkpoint: InMemorySaver has other tables .*compat/checkpoint_memory\.py"
    with pytest.raises(DependencyChangedError, match=sentence):
        MemorySaver(10)


def test_the_tables_of_the_sqlite_saver_are_known(connection: sqlite3.Connection) -> None:
    checkpoint_sqlite.create_tables(SqliteSaver(connection))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("checkpoints", "ALTER TABLE checkpoints RENAME COLUMN thread_id TO conversation_id"),
        ("checkpoints", "ALTER TABLE checkpoints RENAME TO states"),
        ("writes", "ALTER TABLE writes ADD COLUMN namespace TEXT"),
    ],
)
def test_other_tables_of_the_sqlite_saver_are_refused_at_start(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: str, change: str
) -> None:
    setup = SqliteSaver.setup

    def changed(self: SqliteSaver) -> None:
        setup(self)
        self.conn.execute(change)

    monkeypatch.setattr(SqliteSaver, "setup", changed)
    sentence = (
        rf"langgraph-checkpoint-sqlite: SqliteSaver's table {table} has the columns .*compat/checkpoint_sqlite\.py"
    )
    with pytest.raises(DependencyChangedError, match=sentence):
        FileSaver(connection, tmp_path / "conversations.db")


def test_checkpoint_ids_begin_with_the_time() -> None:
    before = checkpoint_sqlite.first_id_since(time.time_ns() - 10**9)
    after = checkpoint_sqlite.first_id_since(time.time_ns() + 10**9)
    assert before < empty_checkpoint()["id"] < after, (
        f"{CHANGED}: checkpoint ids are no longer UUIDs of version 6, so the age of a conversation is unknown."
    )


def test_a_checkpoint_is_stored_as_the_sqlite_saver_stores_it(connection: sqlite3.Connection) -> None:
    saver = SqliteSaver(connection)
    checkpoint_sqlite.create_tables(saver)
    checkpoint = {**empty_checkpoint(), "channel_values": {"messages": [HumanMessage("go", id="1")]}}

    def stored(thread_id: str, put: Any) -> CheckpointTuple:
        place = {"thread_id": thread_id, "checkpoint_ns": "tools:1", "checkpoint_id": "parent", "user": "x"}
        put({"configurable": place}, checkpoint, {"source": "loop", "step": 1, "writes": None})
        found = saver.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": "tools:1"}})
        assert found is not None
        return found

    own = stored("own", lambda *arguments: checkpoint_sqlite.put(saver, *arguments))
    theirs = stored("theirs", lambda *arguments: saver.put(*arguments, {}))
    for found in (own, theirs):
        found.config["configurable"].pop("thread_id")
        assert found.parent_config is not None
        found.parent_config["configurable"].pop("thread_id")
    assert own == theirs, f"{CHANGED}: a checkpoint is stored in another way."


def conversation(*texts: str) -> dict[str, Any]:
    call = {"name": "read", "args": {"offset": 1}, "id": "c1", "type": "tool_call"}
    messages: list[Any] = [
        *(HumanMessage(text, id=text) for text in texts),
        AIMessage("", id="a", tool_calls=[call]),
        ToolMessage("x", id="t", tool_call_id="c1"),
    ]
    return {**empty_checkpoint(), "channel_values": {"messages": messages, "sends": [Send("tools", call)]}}


def test_messages_are_encoded_once_and_as_langgraph_encodes_them() -> None:
    checkpoint = conversation("go")
    serializer, langgraph = CheckpointSerializer(), JsonPlusSerializer()
    assert serializer.dumps_typed(checkpoint) == langgraph.dumps_typed(checkpoint)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HumanMessage, "model_dump", None)
        assert serializer.dumps_typed(checkpoint)[1]
    checkpoint["channel_values"]["messages"][0].name = "changed"
    assert serializer.dumps_typed(checkpoint) == langgraph.dumps_typed(checkpoint)
    assert serializer.dumps_typed("text") == langgraph.dumps_typed("text")


def test_messages_are_decoded_once_and_as_langgraph_decodes_them() -> None:
    stored = JsonPlusSerializer().dumps_typed(conversation("go"))
    serializer, decoded = CheckpointSerializer(), JsonPlusSerializer().loads_typed(stored)
    first = serializer.loads_typed(stored)
    assert first == decoded
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HumanMessage, "model_validate_json", None)
        patch.setattr(HumanMessage, "model_dump", None)
        again = serializer.loads_typed(stored)
        assert serializer.dumps_typed(again) == stored
    assert again == decoded
    assert again["channel_values"] is not first["channel_values"]
    again["channel_values"]["messages"][0].name = "changed"
    assert serializer.loads_typed(stored) == decoded


def test_a_changed_block_of_a_message_does_not_reach_later_runs() -> None:
    stored = JsonPlusSerializer().dumps_typed(AIMessage([{"type": "text", "text": "yes"}], id="a"))
    serializer = CheckpointSerializer()
    serializer.loads_typed(stored).content[0]["cache_control"] = {"type": "ephemeral"}
    assert serializer.loads_typed(stored) == JsonPlusSerializer().loads_typed(stored)


def test_the_memory_for_decoded_messages_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = [JsonPlusSerializer().dumps_typed(conversation(f"{number}" * 1_000)) for number in range(9)]
    monkeypatch.setattr(checkpoint_serializer, "_MAX_DECODED_BYTES", 4_000)
    serializer = CheckpointSerializer()
    found = [weakref.ref(serializer.loads_typed(each)["channel_values"]["messages"][0]) for each in stored]
    assert [message() is not None for message in found[:6]] == [False] * 6
    assert found[-1]() is not None
    assert [serializer.loads_typed(each) for each in stored] == [
        JsonPlusSerializer().loads_typed(each) for each in stored
    ]
