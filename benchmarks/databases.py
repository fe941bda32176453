"""Database servers of the tests, started for a measurement. One that is not installed is None."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeVar

import pytest

from benchmarks.processes import cpu_seconds
from tests.services.mongodb import mongodb_server
from tests.services.postgres import postgres_server
from tests.services.redis import redis_server, redis_url

DATABASE: Final = "database"
Kind = Literal["postgres", "mongodb", "redis"]
Server = TypeVar("Server")


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    address: str
    pid: int | None
    """None for a server that was not started here."""

    def clocks(self) -> dict[str, Callable[[], float]]:
        """Its CPU seconds, if they can be seen from here."""
        return {} if self.pid is None else {DATABASE: partial(cpu_seconds, self.pid)}


@contextmanager
def postgres() -> Iterator[DatabaseServer | None]:
    """The server of `TEST_POSTGRES_URL`, or one that is started here."""
    if address := os.environ.get("TEST_POSTGRES_URL"):
        yield DatabaseServer(address, None)
        return
    with _if_installed(postgres_server()) as server:
        yield None if server is None else DatabaseServer(server.address(), server.pid)


@contextmanager
def mongodb() -> Iterator[DatabaseServer | None]:
    with _if_installed(mongodb_server()) as server:
        address = "" if server is None else f"mongodb://127.0.0.1:{server.port}/benchmark?directConnection=true"
        yield None if server is None else DatabaseServer(address, server.pid)


@contextmanager
def redis() -> Iterator[DatabaseServer | None]:
    with _if_installed(redis_server()) as server:
        yield None if server is None else DatabaseServer(redis_url(server), server.pid)


SERVERS: Final[dict[Kind, Callable[[], AbstractContextManager[DatabaseServer | None]]]] = {
    "postgres": postgres,
    "mongodb": mongodb,
    "redis": redis,
}


@contextmanager
def _if_installed(server: AbstractContextManager[Server]) -> Iterator[Server | None]:
    with ExitStack() as stack:
        try:
            found = stack.enter_context(server)
        except pytest.skip.Exception:
            found = None
        yield found
