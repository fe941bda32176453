"""`platform-engineer ingest` into a real Postgres, killed and started again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

import psycopg

from ai_platform_engineering.knowledge_bases.rag.embeddings.offline import OfflineEmbedder
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import ingest
from ai_platform_engineering.knowledge_bases.rag.ingest.folder import FolderSource
from ai_platform_engineering.knowledge_bases.rag.searching import search
from ai_platform_engineering.knowledge_bases.rag.stores.postgres_store import PostgresKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import Scope
from tests.services.postgres import new_database

pytest_plugins = ("tests.services.fixtures",)

DOCUMENTS = 80
QUERIES = ("how do I undo a release?", "service 7")


def ingesting(folder: Path, database: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ai_platform_engineering.cli", "ingest", str(folder), "--json"],
        env={"PATH": os.environ["PATH"], "HOME": str(folder.parent), "RAG_DATABASE_URL": database},
        cwd=folder.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def contents(database: str) -> object:
    """Documents, chunks, what is known of them, and what is found with which score."""
    embedder = OfflineEmbedder()
    with closing(PostgresKnowledgeStore(database)) as store:
        known = store.versions("handbook")
        hits = [store.nearest(embedder.embed_query(query), embedder.name, 200, Scope()) for query in QUERIES]
        return (
            store.datasources(),
            known,
            {document_id: store.document(document_id) for document_id in known},
            hits,
            store.load_chunks(sorted(hit.chunk_id for hit in hits[0])),
            [search(store, embedder, query, 10, Scope()) for query in QUERIES],
        )


def test_an_ingest_killed_half_way_and_started_again_gives_the_index_of_one_run(
    postgres_address: str, tmp_path: Path
) -> None:
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    for number in range(DOCUMENTS):
        (handbook / f"{number:02}.md").write_text(
            f"# Service {number}\n\nService {number} is run by team {number % 7}."
        )
    (handbook / "50.md").write_text("# Rollback\n\n## Database\n\nRestore it.\n\n## Code\n\nRevert the release.\n")
    with new_database(postgres_address) as half, new_database(postgres_address) as one:
        with closing(PostgresKnowledgeStore(half)) as store, ingesting(handbook, half) as process:
            deadline = monotonic() + 60
            while len(store.versions("handbook")) < DOCUMENTS // 4:
                assert process.poll() is None
                assert monotonic() < deadline
                sleep(0.005)
            process.kill()
            process.wait()
            # What the dead process had begun is undone by the server when it notices.
            before = len(store.versions("handbook"))
        assert before < DOCUMENTS

        with ingesting(handbook, half) as process:
            output, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, "")
        report = json.loads(output)
        assert report["added"] + report["unchanged"] == DOCUMENTS
        assert report["unchanged"] >= before

        with ingesting(handbook, one) as process:
            assert process.wait(60) == 0
        assert contents(half) == contents(one)


async def test_after_many_changes_the_server_knows_what_it_has(postgres_address: str, tmp_path: Path) -> None:
    sections = (f"## Part {number}\n\n{'A sentence about gateways. ' * 50}\n" for number in range(600))
    (tmp_path / "long.md").write_text("# Long\n\n" + "\n".join(sections))
    with new_database(postgres_address) as database, closing(PostgresKnowledgeStore(database)) as store:
        report = await ingest(FolderSource(tmp_path, "handbook"), store, None)
        assert report.chunks >= 600
        with psycopg.connect(database) as connection:
            settled = connection.execute(
                "SELECT last_vacuum IS NOT NULL AND last_analyze IS NOT NULL FROM pg_stat_user_tables "
                "WHERE relname = 'posting'"
            ).fetchone()
    assert settled == (True,)
