"""The stores of conversations, each with a real server that can be stopped and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest

from ai_platform_engineering.settings import Settings, load_settings
from tests.services.local_server import LocalServer
from tests.services.postgres import PostgresServer, new_database
from tests.services.redis import PASSWORD, redis_url

WRONG = "Tr0ub4dor3"
SERVERS = ("postgres", "mongodb", "redis")


@dataclass(frozen=True)
class Store:
    kind: str
    environ: Mapping[str, str]
    server: LocalServer | PostgresServer | None = None
    names: str = field(default_factory=lambda: uuid4().hex)

    def settings(self, **more: str) -> Settings:
        return load_settings({**self.environ, **more}, None)

    def thread(self, name: str) -> str:
        """The id of a conversation that no other test uses."""
        return f"{name}-{self.names}"

    @contextmanager
    def stopped(self) -> Iterator[Callable[[], None]]:
        """The server does not run in the block, or until the given function is called."""
        assert self.server is not None
        self.server.stop()
        is_stopped = True

        def start() -> None:
            nonlocal is_stopped
            if is_stopped:
                is_stopped = False
                self.server.start()  # type: ignore[union-attr]

        try:
            yield start
        finally:
            start()


@contextmanager
def store_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store that is empty, except Redis, which has one search index for all."""
    environ = {"DATA_DIR": str(folder), "LANGGRAPH_CHECKPOINT_TYPE": kind}
    match kind:
        case "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")
            with new_database(server.address()) as address:
                yield Store(kind, environ | {"LANGGRAPH_CHECKPOINT_POSTGRES_DSN": address}, server)
        case "mongodb":
            mongodb: LocalServer = request.getfixturevalue("mongodb")
            uri = f"mongodb://127.0.0.1:{mongodb.port}/test_{uuid4().hex}?directConnection=true"
            yield Store(kind, environ | {"LANGGRAPH_CHECKPOINT_MONGODB_URI": uri}, mongodb)
        case "redis":
            redis: LocalServer = request.getfixturevalue("redis")
            yield Store(kind, environ | {"LANGGRAPH_CHECKPOINT_REDIS_URL": redis_url(redis)}, redis)
        case _:
            yield Store(kind, environ)


def with_wrong_password(store: Store) -> dict[str, str]:
    """The environment, with a password that the server refuses."""
    environ = {name: value.replace(PASSWORD, WRONG) for name, value in store.environ.items()}
    if isinstance(store.server, LocalServer) and store.kind == "mongodb":
        environ["LANGGRAPH_CHECKPOINT_MONGODB_URI"] = f"mongodb://root:{WRONG}@127.0.0.1:{store.server.port}/test"
    return environ
