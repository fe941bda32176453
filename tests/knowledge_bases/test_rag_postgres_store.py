from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import LiteralString

import psycopg
import pytest

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document
from ai_platform_engineering.knowledge_bases.rag.stores.postgres_store import EXACT_UP_TO, PostgresKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import (
    DocumentVersion,
    KnowledgeStore,
    KnowledgeStoreError,
    Scope,
)
from tests.knowledge_bases.store_contract import EAST, EVERYWHERE, MODEL, NORTH, StoreContract, document, ids, put
from tests.services.environment import ROOT
from tests.services.postgres import PASSWORD, PostgresServer, disconnect_all, new_database, postgres_server

pytest_plugins = ("tests.services.fixtures",)

TABLES = "rag.datasource, rag.document, rag.chunk, rag.posting, rag.embedding"
FOREIGN = "schema rag was created by another program. Name another database in RAG_DATABASE_URL, or remove"
OpenStore = Callable[..., PostgresKnowledgeStore]


@pytest.fixture(scope="module")
def shared_database(postgres_address: str) -> Iterator[str]:
    """One for many tests, as making one takes half a second."""
    with new_database(postgres_address) as address:
        PostgresKnowledgeStore(address).close()
        yield address


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    opened: list[PostgresKnowledgeStore] = []

    def open_one(address: str, exact_up_to: int = EXACT_UP_TO) -> PostgresKnowledgeStore:
        opened.append(PostgresKnowledgeStore(address, exact_up_to=exact_up_to))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def emptied_database(shared_database: str) -> str:
    with psycopg.connect(shared_database) as connection:
        connection.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")
    return shared_database


class TestComparingAll(StoreContract):
    @pytest.fixture
    def open_another(self, emptied_database: str, open_store: OpenStore) -> Callable[[], KnowledgeStore]:
        return lambda: open_store(emptied_database)

    @pytest.fixture
    def store(self, open_another: Callable[[], KnowledgeStore]) -> KnowledgeStore:
        return open_another()

    def test_words_count_by_bm25(self, store: KnowledgeStore) -> None:
        for path, text in (("a.md", "pods pods nodes"), ("b.md", "services and nodes of a zone")):
            of = Document("docs", path, "", "", "")
            store.put(of, DocumentVersion("f"), [Chunk(of.document_id, 0, "", text)], None, MODEL)
        # One of two chunks has it, twice among 3 words; the words that are counted are 3 and 3.
        [hit] = store.lexical("pods", 5, EVERYWHERE)
        assert hit.chunk_id == "docs:a.md#0"
        assert hit.score == pytest.approx(0.693147 * 2 * 2.2 / (2 + 1.2), abs=1e-6)

    def test_accents_do_not_matter(self, store: KnowledgeStore) -> None:
        [chunk_id] = put(store, document("a.md"), "Ein Café in Zürich")
        assert ids(store.lexical("cafe zurich", 5, EVERYWHERE)) == ids(store.lexical("ZÜRICH", 5, EVERYWHERE))
        assert ids(store.lexical("zurich", 5, EVERYWHERE)) == [chunk_id]

    def test_text_that_postgres_does_not_keep_is_mended(self, store: KnowledgeStore) -> None:
        broken = Document("docs", "a\0.md", "Nul \0", "half a pair \ud800", "https://docs.test/a")
        [chunk_id] = put(store, broken, "pods\0nodes")
        assert ids(store.lexical("nodes", 5, EVERYWHERE)) == [chunk_id.replace("\0", "\ufffd")]
        kept = store.document(broken.document_id)
        assert kept is not None
        assert (kept.title, kept.text) == ("Nul \ufffd", "half a pair ?")
        assert store.document("docs:b\0.md") is None


def direction(turn: float, dimensions: int = 3) -> list[float]:
    """Unit vectors that turn from the first axis to the second."""
    return [math.cos(turn), math.sin(turn), *[0.0] * (dimensions - 2)]


def put_fan(
    store: KnowledgeStore, datasource: str, size: int, first: float, last: float, dimensions: int = 3
) -> list[str]:
    turns = [first + (last - first) * place / size for place in range(size)]
    of = document("fan.md", datasource=datasource)
    return put(store, of, *["pods"] * size, vectors=[direction(turn, dimensions) for turn in turns])


def uses_of_indexes(address: str) -> Counter[str]:
    """As far as sessions have reported them: one that has ended has reported all of its own."""
    with psycopg.connect(address) as connection:
        rows = connection.execute("SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE schemaname = 'rag'")
        return Counter(dict(rows.fetchall()))


def close_at_server(store: KnowledgeStore, address: str) -> None:
    """Close the store, and wait until its sessions have ended at the server too."""
    store.close()
    disconnect_all(address)


def index_of_model(address: str) -> str:
    with psycopg.connect(address) as connection:
        [row] = connection.execute("SELECT number FROM rag.model WHERE name = %s AND dimensions = 3", [MODEL])
        return f"embedding_of_model_{row[0]}"


@pytest.fixture
def eager_database(emptied_database: str) -> str:
    """Asks an index wherever one can be asked: of these few rows Postgres would rather read all."""
    return f"{emptied_database}&options=-c%20enable_seqscan%3Doff%20-c%20enable_sort%3Doff"


class TestAskingTheIndex:
    def test_the_nearest_of_many_come_from_the_index(self, eager_database: str, open_store: OpenStore) -> None:
        store = open_store(eager_database, exact_up_to=100)
        chunk_ids = put_fan(store, "docs", 300, 0, 1.5)
        before = uses_of_indexes(eager_database)
        hits = store.nearest(direction(0), MODEL, 50, EVERYWHERE)
        close_at_server(store, eager_database)
        assert ids(hits) == chunk_ids[:50]
        assert [hit.score for hit in hits[:2]] == pytest.approx([1, math.cos(1.5 / 300)], abs=1e-6)
        assert uses_of_indexes(eager_database) - before >= Counter({index_of_model(eager_database): 1})

    def test_few_are_compared_one_by_one(self, eager_database: str, open_store: OpenStore) -> None:
        store = open_store(eager_database, exact_up_to=100)
        put_fan(store, "docs", 300, 0, 1.5)
        wiki = put_fan(store, "wiki", 60, 0, 1.5)
        before = uses_of_indexes(eager_database)
        assert ids(store.nearest(direction(0), MODEL, 50, Scope(datasource="wiki"))) == wiki[:50]
        close_at_server(store, eager_database)
        assert index_of_model(eager_database) not in uses_of_indexes(eager_database) - before

    def test_a_scope_is_filled_however_much_is_nearer_outside_it(
        self, eager_database: str, open_store: OpenStore
    ) -> None:
        store = open_store(eager_database, exact_up_to=0)
        put_fan(store, "near", 500, 0, 0.1)
        far = put_fan(store, "far", 50, 1, 1.5)
        before = uses_of_indexes(eager_database)
        assert ids(store.nearest(direction(0), MODEL, 20, Scope(datasource="far"))) == far[:20]
        close_at_server(store, eager_database)
        assert index_of_model(eager_database) in uses_of_indexes(eager_database) - before

    def test_words_are_looked_up_in_their_index_alone(self, eager_database: str, open_store: OpenStore) -> None:
        store = open_store(eager_database)
        put_fan(store, "docs", 300, 0, 1.5)
        with psycopg.connect(eager_database, autocommit=True) as connection:
            connection.execute("VACUUM rag.posting")
        before = uses_of_indexes(eager_database)
        assert len(store.lexical("pods", 5, EVERYWHERE)) == 5
        close_at_server(store, eager_database)
        assert "posting_by_term" in uses_of_indexes(eager_database) - before

    @pytest.mark.parametrize("dimensions", [2000, 3072, 5000])
    def test_large_vectors_are_found(self, emptied_database: str, open_store: OpenStore, dimensions: int) -> None:
        store = open_store(emptied_database, exact_up_to=0)
        chunk_ids = put_fan(store, "docs", 5, 0, 1.5, dimensions)
        hits = store.nearest(direction(0.31, dimensions), MODEL, 3, EVERYWHERE)
        assert ids(hits) == [chunk_ids[place] for place in (1, 2, 0)]
        assert hits[0].score == pytest.approx(math.cos(0.01), abs=1e-6)


def leftovers(address: str) -> tuple[int, int, int]:
    """Postings and vectors without a chunk, and documents that do not have the chunks they should."""
    with psycopg.connect(address) as connection:
        [row] = connection.execute("""
            SELECT
                (SELECT count(*) FROM rag.posting LEFT JOIN rag.chunk ON number = chunk WHERE number IS NULL),
                (SELECT count(*) FROM rag.embedding LEFT JOIN rag.chunk ON number = chunk WHERE number IS NULL),
                (SELECT count(*) FROM rag.document WHERE
                    chunks <> (SELECT count(*) FROM rag.chunk WHERE document = document.number)
                    OR length <> (
                        SELECT coalesce(sum(length), 0) FROM (
                            SELECT DISTINCT chunk, posting.length FROM rag.chunk
                            JOIN rag.posting ON posting.chunk = chunk.number WHERE chunk.document = document.number
                        ) AS words
                    ))
        """).fetchall()
        return row


class TestSeveralProcesses:
    def test_they_may_start_at_once(self, database: str, open_store: OpenStore) -> None:
        together = threading.Barrier(6)

        def start(number: int) -> None:
            together.wait()
            store = open_store(database)
            put(store, document(f"{number}.md"), "pods", vectors=[EAST], model="new-to-all")

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(start, range(6)))
        assert len(open_store(database).nearest(EAST, "new-to-all", 10, EVERYWHERE)) == 6

    def test_they_may_write_the_same_documents(self, emptied_database: str, open_store: OpenStore) -> None:
        stores = [open_store(emptied_database) for _ in range(3)]

        def write(turn: int) -> None:
            store = stores[turn % 3]
            put(store, document(f"{turn % 5}.md"), *["pods and nodes"] * (turn % 4), vectors=[NORTH] * (turn % 4))
            match turn % 10:
                case 3:
                    store.remove([f"docs:{number}.md" for number in (4, 2, 0)])
                case 6:
                    store.remove([f"docs:{number}.md" for number in (0, 2, 4)])
                case 9:
                    store.remove_datasource("docs")

        with ThreadPoolExecutor(9) as threads:
            list(threads.map(write, range(90)))
        assert leftovers(emptied_database) == (0, 0, 0)
        for number in range(5):
            put(stores[0], document(f"{number}.md"), "volumes", vectors=[EAST])
        assert len(stores[1].lexical("volumes", 20, EVERYWHERE)) == len(stores[1].versions("docs")) == 5
        assert stores[1].lexical("pods", 20, EVERYWHERE) == []

    def test_one_that_is_killed_leaves_whole_documents(self, emptied_database: str, open_store: OpenStore) -> None:
        store = open_store(emptied_database)
        with subprocess.Popen([sys.executable, "-c", WRITES_FOR_EVER, emptied_database], cwd=ROOT) as writer:
            while len(store.versions("docs")) < 3:
                assert writer.poll() is None
                time.sleep(0.01)
            writer.kill()
        assert leftovers(emptied_database) == (0, 0, 0)
        [datasource] = store.datasources()
        assert datasource.chunks == 40 * datasource.documents


WRITES_FOR_EVER = """
import sys
from ai_platform_engineering.knowledge_bases.rag.stores.postgres_store import EXACT_UP_TO, PostgresKnowledgeStore
from tests.knowledge_bases.store_contract import EAST, document, put

store = PostgresKnowledgeStore(sys.argv[1])
for number in range(100_000):
    put(store, document(f"{number}.md"), *["pods and nodes"] * 40, vectors=[EAST] * 40)
"""


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


class TestTrouble:
    def test_a_server_that_is_killed_and_comes_back(self, own_server: PostgresServer, open_store: OpenStore) -> None:
        store = open_store(own_server.address())
        [chunk_id] = put(store, document("a.md"), "pods", vectors=[EAST])
        with ThreadPoolExecutor(1) as threads:
            stop = threading.Event()
            writing = threads.submit(put_until, store, stop)
            try:
                own_server.stop("KILL")
                with pytest.raises(
                    KnowledgeStoreError, match=r"Postgres at .* cannot be used as the knowledge base"
                ) as mid_way:
                    writing.result(timeout=30)
                with pytest.raises(KnowledgeStoreError, match=r"No such file|Connection refused") as afterwards:
                    store.lexical("pods", 5, EVERYWHERE)
            finally:
                stop.set()
                own_server.start()
        assert PASSWORD not in f"{mid_way.value}{afterwards.value}"
        assert chunk_id in ids(store.lexical("pods", 500, EVERYWHERE))
        assert leftovers(own_server.address()) == (0, 0, 0)

    def test_a_server_that_was_restarted_is_not_noticed(
        self, own_server: PostgresServer, open_store: OpenStore
    ) -> None:
        store = open_store(own_server.address())
        before = store.datasources()
        own_server.stop()
        own_server.start()
        assert store.datasources() == before

    def test_a_server_without_pgvector(self, own_server: PostgresServer) -> None:
        with new_database(own_server.address()) as address, pytest.raises(KnowledgeStoreError, match="has no pgvector"):
            PostgresKnowledgeStore(f"{address}&options=-c%20extension_control_path%3D/nowhere")

    def test_a_user_who_may_not_make_the_extension(self, own_server: PostgresServer) -> None:
        with new_database(own_server.address()) as address:
            with psycopg.connect(address) as connection:
                connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-word'")
            guest = address.replace(f"postgres:{PASSWORD}", "guest:guest-word")
            with pytest.raises(KnowledgeStoreError, match="administrator run CREATE EXTENSION vector"):
                PostgresKnowledgeStore(guest)
            with psycopg.connect(address) as connection:
                connection.execute("CREATE EXTENSION vector")
            with pytest.raises(KnowledgeStoreError, match=r"permission denied for database .*Grant it"):
                PostgresKnowledgeStore(guest)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ("UPDATE rag.format SET number = 99", r"newer .*\(format 99; this version reads 1\)\. Update"),
            ("UPDATE rag.format SET number = 0", FOREIGN),
            ("DELETE FROM rag.format", FOREIGN),
            ("INSERT INTO rag.format VALUES (1)", FOREIGN),
            ("DROP TABLE rag.format", FOREIGN),
        ],
    )
    def test_tables_of_a_newer_or_unknown_format_are_left_alone(
        self, own_server: PostgresServer, change: LiteralString, sentence: str
    ) -> None:
        with new_database(own_server.address()) as address:
            with closing(PostgresKnowledgeStore(address)) as store:
                put(store, document("a.md"), "pods")
            with psycopg.connect(address) as connection:
                connection.execute(change)
            with pytest.raises(KnowledgeStoreError, match=sentence) as refused:
                PostgresKnowledgeStore(address)
            assert f"Postgres at {own_server.directory}/" in str(refused.value)
            with psycopg.connect(address) as connection:
                assert connection.execute("SELECT id FROM rag.document").fetchall() == [("docs:a.md",)]

    @pytest.mark.parametrize(
        ("database", "password", "reason"),
        [
            ("postgres", "wrong-word", "password authentication failed for user"),
            ("nowhere", PASSWORD, 'database "nowhere" does not exist'),
        ],
    )
    def test_a_refused_login_names_the_reason(
        self, own_server: PostgresServer, database: str, password: str, reason: str
    ) -> None:
        with pytest.raises(KnowledgeStoreError, match=reason) as refused:
            PostgresKnowledgeStore(own_server.address(database, password=password))
        assert str(refused.value).startswith(f"Postgres at {own_server.directory}/{database} cannot be used")
        assert "RAG_DATABASE_URL" in str(refused.value)
        assert password not in str(refused.value)

    def test_a_port_without_a_server(self, unused_port: int) -> None:
        with pytest.raises(KnowledgeStoreError, match=f"Postgres at 127.0.0.1:{unused_port}/kb .*: Connection refused"):
            PostgresKnowledgeStore(f"postgresql://user:secret-word@127.0.0.1:{unused_port}/kb")

    @pytest.mark.parametrize(
        "address",
        [
            "postgresql://user:sec@ret@127.0.0.1/kb",
            "postgresql://user:12/ret@127.0.0.1/kb",
            "postgresql://user:sec/ret@127.0.0.1/kb",
            "postgresql://user:sec%ret@127.0.0.1/kb",
            "postgresql://user:sec:ret@[127.0.0.1/kb",
            "postgresql://127.0.0.1/kb?sec=ret",
            "mysql://user:secret@127.0.0.1/kb",
        ],
    )
    def test_an_address_that_cannot_be_read_is_not_shown(self, address: str) -> None:
        with pytest.raises(
            KnowledgeStoreError, match="RAG_DATABASE_URL is not the address of a Postgres database"
        ) as unreadable:
            PostgresKnowledgeStore(address)
        assert unreadable.value.__cause__ is None
        for part in ("sec", "ret", "12"):
            assert part not in str(unreadable.value)


def put_until(store: KnowledgeStore, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        put(store, document(f"{number}.md"), *["pods"] * 20, vectors=[EAST] * 20)
        number += 1
