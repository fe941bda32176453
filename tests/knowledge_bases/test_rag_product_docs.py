"""The product's own documentation: in a checkout, and in the wheel that is built from it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.knowledge_bases.rag.ingest.engine import ingest
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import ProductDocs
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStore, Scope

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"README.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KnowledgeStore]:
    with closing(SqliteKnowledgeStore(tmp_path / "knowledge.db")) as store:
        yield store


async def test_every_page_is_a_document_that_is_linked_as_in_the_repository(store: KnowledgeStore) -> None:
    report = await ingest(ProductDocs(), store, None)
    assert (report.added, report.failed) == (len(PAGES), ())
    assert {known.removeprefix("platform-engineer:") for known in store.versions("platform-engineer")} == PAGES
    document = store.document("platform-engineer:docs/deploy.md")
    assert document is not None
    assert (document.link, document.text.splitlines()[0]) == ("docs/deploy.md", f"# {document.title}")
    found = store.lexical("run an agent remotely", 5, Scope("platform-engineer"))
    assert found


async def test_the_next_start_reads_nothing_again(store: KnowledgeStore) -> None:
    await ingest(ProductDocs(), store, None)
    report = await ingest(ProductDocs(), store, None)
    assert (report.added, report.updated, report.unchanged, report.removed) == (0, 0, len(PAGES), 0)


def test_the_wheel_has_the_same_pages(tmp_path: Path) -> None:
    """The package as it is installed from the wheel, in a process that does not see the checkout."""
    build = "import hatchling.build, sys; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    script = """
import asyncio, sys
sys.path.insert(0, "installed")
import ai_platform_engineering
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import ProductDocs
async def main():
    async for item in ProductDocs().items():
        loaded = await item.load(None)
        print(item.path, len(loaded.content))
assert "installed" in ai_platform_engineering.__file__
asyncio.run(main())
"""
    completed = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    sizes = dict(line.split() for line in completed.stdout.splitlines())
    assert sizes == {page: str((ROOT / page).stat().st_size) for page in PAGES}
