"""The store in a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import Store
from tests.knowledge_bases.store_contract import OpenAnother, StoreContract


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    with closing(SqliteStore(file)) as store:
        yield store


@pytest.fixture
def open_another(file: Path) -> Iterator[OpenAnother]:
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(SqliteStore(file)))


class TestSqliteStore(StoreContract):
    pass
