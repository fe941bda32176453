"""The store in a SQLite file: what all stores do, and what is special about a file."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest

from ai_platform_engineering.knowledge_bases.rag.stores import sqlite_search
from ai_platform_engineering.knowledge_bases.rag.stores.opening import knowledge_file, open_store
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_file import BUSY_SECONDS, FORMAT, unusable
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStore, KnowledgeStoreError, Scope
from ai_platform_engineering.knowledge_bases.rag.stores.vector_blocks import BLOCK_ROWS
from ai_platform_engineering.settings import load_settings
from tests.knowledge_bases.store_contract import (
    EAST,
    EVERYWHERE,
    MODEL,
    OpenAnother,
    StoreContract,
    document,
    ids,
    put,
)

_WRITER = """
import sys
from pathlib import Path
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from tests.knowledge_bases.store_contract import document, put

store = SqliteKnowledgeStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    put(store, document(f"{number}.md"), *[f"pods of number{number} part{part}" for part in range(5)])
    print(number, flush=True)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.db"


@pytest.fixture
def store(file: Path) -> Iterator[KnowledgeStore]:
    with closing(SqliteKnowledgeStore(file)) as store:
        yield store


@pytest.fixture
def open_another(file: Path) -> Iterator[OpenAnother]:
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(SqliteKnowledgeStore(file)))


class TestSqliteStore(StoreContract):
    pass


def writer(file: Path, first: int, end: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(file), str(first), str(end)], stdout=subprocess.PIPE, text=True
    )


def check_sound(file: Path) -> None:
    """SQLite's integrity checks of the file and of the full-text index."""
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")


def test_processes_that_start_at_once_share_a_new_file(file: Path) -> None:
    writers = [writer(file, first, first + 5) for first in (0, 5, 10)]
    for process in writers:
        process.communicate(timeout=60)
        assert process.returncode == 0
    with closing(SqliteKnowledgeStore(file)) as store:
        assert len(store.versions("docs")) == 15
        assert len(store.lexical("pods", 100, EVERYWHERE)) == 75
    check_sound(file)


def test_a_killed_writer_leaves_whole_documents(file: Path) -> None:
    with closing(SqliteKnowledgeStore(file)) as store, writer(file, 0, 100_000) as process:
        assert process.stdout is not None
        written = -1
        while written < 20:
            written = int(process.stdout.readline())
            # Searching goes on while the other process writes.
            assert f"docs:{written}.md#0" in ids(store.lexical(f"number{written}", 10, EVERYWHERE))
        process.send_signal(signal.SIGKILL)
        process.wait()
        [datasource] = store.datasources()
        assert datasource.documents > written
        assert datasource.chunks == 5 * datasource.documents
        assert len(store.lexical("pods", 10_000_000, EVERYWHERE)) == datasource.chunks
        put(store, document("after.md"), "written after the other one died")
        assert ids(store.lexical("died", 5, EVERYWHERE)) == ["docs:after.md#0"]
    check_sound(file)


def test_the_index_is_sound_after_documents_came_and_went(store: KnowledgeStore, file: Path) -> None:
    chance = random.Random(3)  # noqa: S311
    for _ in range(150):
        name = f"{chance.randrange(20)}.md"
        if chance.random() < 0.3:
            store.remove([f"docs:{name}"])
        else:
            texts = [f"word{chance.randrange(9)} pods" for _ in range(chance.randrange(4))]
            put(store, document(name, f"Title{chance.randrange(9)}"), *texts, vectors=[EAST] * len(texts))
    check_sound(file)
    store.remove_datasource("docs")
    check_sound(file)
    with closing(sqlite3.connect(file)) as connection:
        for table in ("document", "document_text", "chunk", "vector", "datasource", "vocabulary"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table  # noqa: S608


def test_reading_and_opening_do_not_wait_for_a_writer(
    store: KnowledgeStore, file: Path, open_another: OpenAnother
) -> None:
    put(store, document("a.md"), "pods", vectors=[EAST])
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        another = open_another()
        for reader in (store, another):
            assert ids(reader.lexical("pods", 5, EVERYWHERE)) == ids(reader.nearest(EAST, MODEL, 5, EVERYWHERE))
        assert time.monotonic() - started < BUSY_SECONDS


def test_another_file_in_its_place_is_read_without_a_restart(store: KnowledgeStore, file: Path, tmp_path: Path) -> None:
    for number in range(3):
        put(store, document(f"old{number}.md"), "pods of the old file", vectors=[EAST])
    assert len(store.nearest(EAST, MODEL, 10, EVERYWHERE)) == 3
    other = tmp_path / "other.db"
    with closing(SqliteKnowledgeStore(other)) as restored:
        put(restored, document("new.md"), "pods of the new file", vectors=[EAST])
    for leftover in tmp_path.glob("knowledge.db*"):
        leftover.unlink()
    other.rename(file)

    assert ids(store.lexical("pods", 10, EVERYWHERE)) == ["docs:new.md#0"]
    assert ids(store.nearest(EAST, MODEL, 10, EVERYWHERE)) == ["docs:new.md#0"]


def test_a_file_that_was_removed_is_made_again(store: KnowledgeStore, file: Path, open_another: OpenAnother) -> None:
    put(store, document("old.md"), "pods")
    for leftover in file.parent.glob("knowledge.db*"):
        leftover.unlink()

    assert store.lexical("pods", 10, EVERYWHERE) == []
    put(open_another(), document("new.md"), "pods")
    assert ids(store.lexical("pods", 10, EVERYWHERE)) == ["docs:new.md#0"]


def test_only_the_owner_may_read_the_file(store: KnowledgeStore, file: Path) -> None:
    put(store, document("a.md"), "pods")
    assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}


def test_the_nearest_are_exactly_the_nearest(store: KnowledgeStore) -> None:
    random_numbers = np.random.default_rng(5)

    def unit(count: int) -> np.ndarray:
        vectors = random_numbers.standard_normal((count, 24), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    kept: dict[str, np.ndarray] = {}

    def keep(name: str, count: int) -> None:
        vectors = unit(count)
        for chunk_id in [chunk_id for chunk_id in kept if chunk_id.startswith(f"docs:{name}#")]:
            del kept[chunk_id]
        kept.update(zip(put(store, document(name), *["x"] * count, vectors=vectors), vectors, strict=True))

    def check() -> None:
        names = list(kept)
        everything = np.stack(list(kept.values()))
        for query in unit(3):
            exact = everything @ query
            expected = [names[place] for place in np.argsort(-exact)[:20]]
            hits = store.nearest(query, MODEL, 20, EVERYWHERE)
            assert len(set(ids(hits)) & set(expected)) >= 19
            assert [hit.score for hit in hits] == pytest.approx(sorted(exact)[::-1][:20], abs=1e-3)

    for name in ("a.md", "b.md", "c.md"):
        keep(name, BLOCK_ROWS // 2 + 100)
    check()
    keep("b.md", 50)
    check()
    keep("d.md", BLOCK_ROWS // 2)
    keep("e.md", 3)
    check()
    store.remove(["docs:a.md", "docs:d.md"])
    for chunk_id in [chunk_id for chunk_id in kept if chunk_id.startswith(("docs:a.md#", "docs:d.md#"))]:
        del kept[chunk_id]
    check()


def test_common_words_do_not_change_what_is_found(store: KnowledgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(11)  # noqa: S311
    rare = [f"rare{number}" for number in range(40)]
    for number in range(60):
        texts = [
            " ".join(
                ["cluster"] * chance.randint(1, 3) + chance.choices(rare, k=2) + ["filler"] * chance.randint(1, 20)
            )
            for _ in range(3)
        ]
        put(store, document(f"{number}.md"), *texts)
    queries = ["cluster rare3", "rare1 rare2 cluster filler", "cluster", "cluster filler", "unheard cluster"]
    # Fewer are asked for than have a rare word: those are what the short cut is for.
    before = [store.lexical(query, 3, EVERYWHERE) for query in queries]
    only_common = store.lexical("cluster rare3", 20, Scope(document_id="docs:7.md"))
    monkeypatch.setattr(sqlite_search, "_MAX_RANKED", 30)
    assert [store.lexical(query, 3, EVERYWHERE) for query in queries] == before
    assert store.lexical("cluster rare3", 20, Scope(document_id="docs:7.md")) == only_common != []


def test_text_that_is_no_text_is_refused(store: KnowledgeStore) -> None:
    with pytest.raises(KnowledgeStoreError, match="not text"):
        put(store, document("a\udc80.md"), "pods")
    with pytest.raises(KnowledgeStoreError, match="not text"):
        store.document("docs:a\udc80.md")
    assert store.lexical("pods \udc80", 5, EVERYWHERE) == []
    assert store.datasources() == []


_WITHOUT_NUMPY = f"""
{_WRITER}
from ai_platform_engineering.knowledge_bases.rag.stores.store import Scope, KnowledgeStoreError

print(len(store.lexical("pods", 9, Scope())), "numpy" in sys.modules)
sys.modules["numpy"] = None
vector = [1.0]
searched = lambda: store.nearest(vector, "model", 5, Scope())
kept = lambda: put(store, document("a.md"), "x", vectors=[vector])
for use in (searched, kept):
    try:
        use()
    except KnowledgeStoreError as error:
        print(error)
"""


def test_words_alone_need_nothing_large_and_vectors_say_what_they_need(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_NUMPY, str(file), "0", "1"], capture_output=True, text=True, check=True
    )
    _, words, *sentences = done.stdout.splitlines()
    assert words == "5 False"
    assert len(sentences) == 2
    assert all("Vectors need numpy" in sentence and "EXTRAS=embeddings" in sentence for sentence in sentences)


def test_a_file_that_is_no_database_is_left_alone(file: Path) -> None:
    file.write_text("These are my notes, and no database. " * 200)
    with pytest.raises(KnowledgeStoreError, match=r"knowledge\.db cannot be used as .*: .*Move it away"):
        SqliteKnowledgeStore(file)
    assert file.read_text().startswith("These are my notes")


def test_the_database_of_something_else_is_left_alone(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE invoices (number INTEGER)")
    with pytest.raises(KnowledgeStoreError, match=r"knowledge\.db is not a knowledge base, .*Move it away"):
        SqliteKnowledgeStore(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("invoices",)]


def test_a_newer_file_is_left_alone(file: Path) -> None:
    SqliteKnowledgeStore(file).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(KnowledgeStoreError, match=r"knowledge\.db was .*newer .*format 3; .* supports 2.*Upgrade"):
        SqliteKnowledgeStore(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT + 1,)


@pytest.mark.parametrize("number", [-1, 0])
def test_a_file_of_unknown_format_is_left_alone(file: Path, number: int) -> None:
    with closing(SqliteKnowledgeStore(file)) as store:
        put(store, document("a.md"), "pods")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(KnowledgeStoreError, match=rf"knowledge\.db .*unknown format \({number}\)\. Move .*DATA_DIR"):
        SqliteKnowledgeStore(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT id FROM document").fetchall() == [("docs:a.md",)]


def test_the_index_of_an_earlier_version_is_made_again(file: Path) -> None:
    with closing(SqliteKnowledgeStore(file)) as store:
        put(store, document("a.md"), "pods", "再起動の前に")
    with closing(sqlite3.connect(file)) as earlier:
        earlier.execute("INSERT INTO words (words) VALUES ('delete-all')")
        earlier.execute("INSERT INTO words (words) VALUES ('rebuild')")
        earlier.execute("PRAGMA user_version = 1")
        earlier.commit()
    with closing(SqliteKnowledgeStore(file)) as store:
        assert ids(store.lexical("起動", 10, EVERYWHERE)) == ["docs:a.md#1"]
        assert ids(store.lexical("pod", 10, EVERYWHERE)) == ["docs:a.md#0"]
        store.remove(["docs:a.md"])
    check_sound(file)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file")
    with pytest.raises(KnowledgeStoreError, match=r"occupied/knowledge\.db cannot be used .*another one with DATA_DIR"):
        SqliteKnowledgeStore(tmp_path / "occupied" / "knowledge.db")
    (tmp_path / "directory.db").mkdir()
    with pytest.raises(KnowledgeStoreError, match="Is a directory"):
        SqliteKnowledgeStore(tmp_path / "directory.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_named(file: Path) -> None:
    SqliteKnowledgeStore(file).close()
    file.chmod(0o400)
    with pytest.raises(KnowledgeStoreError, match=r"Permission denied.*DATA_DIR"):
        SqliteKnowledgeStore(file)


_FULL_DISK = """
import resource, sys
from pathlib import Path
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import Scope, KnowledgeStoreError
from tests.knowledge_bases.store_contract import document, put

store = SqliteKnowledgeStore(Path(sys.argv[1]))
put(store, document("small.md"), "pods")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    put(store, document("large.md"), *[f"nodes {number} " * 100 for number in range(20_000)])
except KnowledgeStoreError as error:
    print(error)
print(list(store.versions("docs")), [hit.chunk_id for hit in store.lexical("pods nodes", 5, Scope())])
"""


def test_a_disk_without_room_loses_nothing_that_was_kept(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    sentence, kept = done.stdout.splitlines()
    assert sentence.startswith(f"{file} cannot be used as the knowledge base: ")
    assert "room" in sentence
    assert kept == "['docs:small.md'] ['docs:small.md#0']"
    check_sound(file)


def test_every_trouble_has_its_way_out(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("PRAGMA max_page_count = 3")
        with pytest.raises(sqlite3.OperationalError) as full:
            connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite3.OperationalError) as busy:
                connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as no_module:
            connection.execute("CREATE VIRTUAL TABLE temp.x USING fts0(y)")
        connection.execute("PRAGMA query_only = ON")
        with pytest.raises(sqlite3.OperationalError) as read_only:
            connection.execute("DELETE FROM t")
    assert "Make room on the disk" in str(unusable(file, full.value))
    assert "Another process is writing to it" in str(unusable(file, busy.value))
    assert "Let this user write" in str(unusable(file, read_only.value))
    missing = sqlite3.OperationalError(str(no_module.value).replace("fts0", "fts5"))
    assert "RAG_DATABASE_URL" in str(unusable(file, missing))


def test_the_settings_say_which_store(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path / "data")}, env_file=None)
    assert knowledge_file(settings) == tmp_path / "data" / "knowledge.db"
    with closing(open_store(settings)) as store:
        put(store, document("a.md"), "pods")
    with closing(SqliteKnowledgeStore(knowledge_file(settings))) as store:
        assert list(store.versions("docs")) == ["docs:a.md"]
