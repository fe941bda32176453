"""Where conversations and events are stored: the combinations that are measured, and their settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from ai_platform_engineering.settings.conversation_settings import ADDRESS_VARIABLES
from benchmarks.databases import DatabaseServer
from tests.services.postgres import new_database

LABELS: Final = {
    "memory": "memory",
    "sqlite": "SQLite",
    "postgres": "Postgres",
    "mongodb": "MongoDB",
    "redis": "Redis",
}


class Storage(NamedTuple):
    checkpointer: str
    event_log: str

    @property
    def label(self) -> str:
        return f"conversations in {LABELS[self.checkpointer]}, event log in {LABELS[self.event_log]}"

    @property
    def server(self) -> str | None:
        """The kind of the database server that it needs."""
        return next((kind for kind in self if kind in ADDRESS_VARIABLES), None)


MEMORY: Final = Storage("memory", "memory")
DEFAULT: Final = Storage("sqlite", "sqlite")
SHARED: Final = Storage("postgres", "postgres")
"""The storage of several replicas."""
STORAGES: Final = (
    MEMORY,
    *(Storage(kind, "memory") for kind in ("sqlite", "postgres", "mongodb", "redis")),
    *(Storage("memory", kind) for kind in ("sqlite", "postgres")),
    DEFAULT,
    SHARED,
)


@contextmanager
def storage_settings(storage: Storage, servers: Mapping[str, DatabaseServer]) -> Iterator[dict[str, str]]:
    """The settings of a product with this storage. In Postgres it has a database of its own."""
    chosen = {"LANGGRAPH_CHECKPOINT_TYPE": storage.checkpointer, "EVENT_LOG": storage.event_log}
    match storage.server:
        case None:
            yield chosen
        case "postgres":
            with new_database(servers["postgres"].address) as address:
                yield {**chosen, ADDRESS_VARIABLES["postgres"]: address, "EVENT_LOG_POSTGRES_DSN": address}
        case kind:
            yield {**chosen, ADDRESS_VARIABLES[kind]: servers[kind].address}
