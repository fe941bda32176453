"""Receivers in Postgres, for servers on several machines: any of them may deliver, one at a time to each receiver."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, LiteralString

from a2a.types.a2a_pb2 import TaskPushNotificationConfig

from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.postgres.advisory_locks import AdvisoryLocks
from ai_platform_engineering.storage.postgres.connections import SchemaConnections
from ai_platform_engineering.storage.postgres.schema import Schema
from ai_platform_engineering.storage.push.receivers import Receiver, ReceiverKey, ReceiverStoreError
from ai_platform_engineering.utils.postgres_address import PostgresAddress

_MAX_CONNECTIONS: Final = 4
# `agent` is the server of the task: the supervisor and its agents may share a database.
_SCHEMA: Final = Schema(
    "push",
    1,
    """
CREATE TABLE push.receiver (
    agent text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    config_id text COLLATE "C" NOT NULL,
    created_ns bigint NOT NULL,
    delivered bigint NOT NULL,
    finished bool NOT NULL DEFAULT false,
    config bytea NOT NULL,
    PRIMARY KEY (agent, task_id, owner, config_id)
);
CREATE INDEX receiver_unfinished ON push.receiver (agent) WHERE NOT finished;
""",
)
_PUT: Final[LiteralString] = """
INSERT INTO push.receiver (agent, task_id, owner, config_id, created_ns, delivered, config)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (agent, task_id, owner, config_id) DO UPDATE SET config = excluded.config, finished = false
"""
_SELECT: Final[LiteralString] = "SELECT owner, config, delivered, created_ns FROM push.receiver WHERE agent = %s"
_KEYS: Final[LiteralString] = "SELECT task_id, owner, config_id FROM push.receiver WHERE agent = %s"
_KEY: Final[LiteralString] = "task_id = %s AND owner = %s AND config_id = %s"


class ReceiversAddress(PostgresAddress):
    setting = "EVENT_LOG_POSTGRES_DSN"
    purpose = "to store the receivers of push notifications"
    error = ReceiverStoreError
    tables_gone = "Its tables are gone; restart the server, which creates them"


class PostgresReceivers:
    """Connects and creates its tables on first use. A claim is an advisory lock."""

    is_shared = True

    def __init__(self, address: ReceiversAddress, agent: str) -> None:
        self._address = address
        self._agent = agent
        self._connections = SchemaConnections(address, _SCHEMA, _MAX_CONNECTIONS)
        self._claims = AdvisoryLocks(address, "push")

    def put(self, receiver: Receiver) -> None:
        config = receiver.config.SerializeToString()
        self._write(_PUT, *receiver.key, receiver.created_ns, receiver.delivered, config)

    def get(self, key: ReceiverKey) -> Receiver | None:
        found = [_receiver(row) for row in self._rows(f"{_SELECT} AND {_KEY}", *key)]
        return found[0] if found else None

    def of_task(self, task_id: str) -> list[Receiver]:
        rows = self._rows(f"{_SELECT} AND task_id = %s ORDER BY created_ns, config_id", task_id)
        return [_receiver(row) for row in rows]

    def keys(self, task_ids: Collection[str]) -> list[ReceiverKey]:
        return [ReceiverKey(*row) for row in self._rows(f"{_KEYS} AND task_id = ANY(%s)", list(task_ids))]

    def unfinished(self) -> list[ReceiverKey]:
        return [ReceiverKey(*row) for row in self._rows(f"{_KEYS} AND NOT finished")]

    def tasks(self, created_before_ns: int) -> list[str]:
        query: LiteralString = "SELECT DISTINCT task_id FROM push.receiver WHERE agent = %s AND created_ns < %s"
        return [task_id for (task_id,) in self._rows(query, created_before_ns)]

    def mark(self, key: ReceiverKey, delivered: int, *, finished: bool) -> None:
        with self._connections.connection() as connection:
            connection.execute(
                f"UPDATE push.receiver SET delivered = %s, finished = %s WHERE agent = %s AND {_KEY}",  # noqa: S608
                [delivered, finished, self._agent, *key],
            )

    def delete(self, task_id: str, owner: str | None = None, config_id: str | None = None) -> None:
        self._write(
            "DELETE FROM push.receiver WHERE agent = %s AND task_id = %s AND owner = coalesce(%s, owner)"
            " AND config_id = coalesce(%s, config_id)",
            task_id,
            owner,
            config_id,
        )

    def claim(self, key: ReceiverKey) -> bool:
        return self._claims.acquire("/".join((self._agent, *key)))

    def release(self, key: ReceiverKey) -> None:
        self._claims.release("/".join((self._agent, *key)))

    def check_up(self, name: str) -> StoreCheckup:
        return _SCHEMA.check_up(name, self._address, "receiver", "receivers")

    def close(self) -> None:
        self._claims.close()
        self._connections.close()

    def _write(self, statement: LiteralString, *values: object) -> None:
        with self._connections.connection() as connection:
            connection.execute(statement, [self._agent, *values])

    def _rows(self, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        with self._connections.connection() as connection:
            return connection.execute(query, [self._agent, *values]).fetchall()


def _receiver(row: tuple[Any, ...]) -> Receiver:
    owner, config, delivered, created_ns = row
    return Receiver(owner, TaskPushNotificationConfig.FromString(config), delivered, created_ns)
