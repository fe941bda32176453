"""The stores of memories, each with a real server that can be stopped and started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.storage.stores import Store, store_of

KINDS = ("sqlite", "memory", "postgres", "mongodb", "redis")
PERSISTENT = ("sqlite", "postgres", "mongodb", "redis")


@contextmanager
def memory_store_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """The address is that of the conversations: `LANGGRAPH_STORE_*` is unset."""
    with store_of(kind, folder, request) as found:
        environ = {name: value for name, value in found.environ.items() if name != "LANGGRAPH_CHECKPOINT_TYPE"}
        conversations = {"LANGGRAPH_CHECKPOINT_TYPE": "memory", "LANGGRAPH_STORE_TYPE": kind}
        yield Store(kind, environ | conversations, found.server, found.names)
