"""The work of an ingest, over a real store: what is read again, what is removed, what stays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from ai_platform_engineering.knowledge_bases.rag.documents import document_id
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import DatasourceTakenError, ingest
from ai_platform_engineering.knowledge_bases.rag.ingest.report import IngestReport, Progress
from ai_platform_engineering.knowledge_bases.rag.source import Absent, Item, LoadedItem, SourceError, Unchanged
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion, KnowledgeStore, Scope, Vector

Answer = str | LoadedItem | Unchanged | Absent | Exception


def page(content: str, revision: str | None = None) -> LoadedItem:
    return LoadedItem(content.encode(), "text/markdown", "page.md", "https://docs.example/page", revision)


@dataclass
class Pages:
    """A source whose pages answer as they are written here, and that knows what it was asked with."""

    pages: dict[str, Answer]
    datasource: str = "handbook"
    origin: str = "https://docs.example"
    complete: bool = True
    asked: dict[str, DocumentVersion | None] = field(default_factory=dict)

    async def items(self) -> AsyncIterator[Item]:
        for path, answer in self.pages.items():
            yield Item(path, partial(self._load, path, answer))

    async def _load(self, path: str, answer: Answer, known: DocumentVersion | None) -> LoadedItem | Unchanged | Absent:
        self.asked[path] = known
        match answer:
            case str():
                return page(answer)
            case Exception():
                raise answer
        return answer


@dataclass
class Letters:
    """An embedder of two numbers a text: whether it has a `z`. It notes how many texts came at once."""

    name: str = "letters"
    batches: list[list[str]] = field(default_factory=list)
    fails_at: str | None = None

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.batches.append(list(texts))
        if self.fails_at is not None and any(self.fails_at in text for text in texts):
            raise EmbeddingsError("The provider is away.")
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        return [1.0, 0.0] if "z" in text else [0.0, 1.0]


Ingest = Callable[..., Awaitable[IngestReport]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KnowledgeStore]:
    with closing(SqliteKnowledgeStore(tmp_path / "knowledge.db")) as store:
        yield store


@pytest.fixture
def run(store: KnowledgeStore) -> Ingest:
    async def run(pages: dict[str, Answer] | Pages, embedder: Letters | None = None) -> IngestReport:
        return await ingest(pages if isinstance(pages, Pages) else Pages(pages), store, embedder)

    return run


def counts(report: IngestReport) -> tuple[int, int, int, int, int]:
    return report.added, report.updated, report.unchanged, report.removed, len(report.failed)


def kept(store: KnowledgeStore) -> set[str]:
    return {known.removeprefix("handbook:") for known in store.versions("handbook")}


async def test_only_what_changed_is_read_again_and_what_is_gone_is_removed(store: KnowledgeStore, run: Ingest) -> None:
    assert counts(await run({"a": "# A\n\none", "b": "# B\n\ntwo", "c": "# C\n\nthree"})) == (3, 0, 0, 0, 0)
    assert counts(await run({"a": "# A\n\none", "b": "# B\n\nnew", "d": "# D\n\nfour"})) == (1, 1, 1, 1, 0)
    assert kept(store) == {"a", "b", "d"}
    document = store.document(document_id("handbook", "b"))
    assert document is not None
    assert (document.title, document.text, document.link) == ("B", "# B\n\nnew\n", "https://docs.example/page")
    assert [hit.chunk_id for hit in store.lexical("three two new", 9, Scope())] == ["handbook:b#0"]


async def test_an_item_that_cannot_be_read_is_reported_and_its_document_stays(
    store: KnowledgeStore, run: Ingest
) -> None:
    await run({"a": "# A\n\none", "b": "# B\n\ntwo"})
    report = await run({"a": SourceError("a cannot be read."), "b": LoadedItem(b"\x89PNG", "image/png", "b.png", "b")})
    assert counts(report) == (0, 0, 0, 0, 2)
    failures = dict(report.failed)
    assert failures["a"] == "a cannot be read."
    assert "image/png" in failures["b"]
    assert kept(store) == {"a", "b"}


async def test_a_listing_that_was_cut_removes_only_items_that_are_absent(store: KnowledgeStore, run: Ingest) -> None:
    await run({"a": "one", "b": "two", "c": "three"})
    report = await run(Pages({"a": "one", "b": Absent()}, complete=False))
    assert counts(report) == (0, 0, 1, 1, 0)
    assert not report.complete
    assert kept(store) == {"a", "c"}


async def test_what_was_never_kept_cannot_be_removed(run: Ingest) -> None:
    assert counts(await run({"a": Absent()})) == (0, 0, 0, 0, 0)


async def test_an_item_that_is_listed_twice_is_loaded_once(store: KnowledgeStore) -> None:
    class Twice(Pages):
        async def items(self) -> AsyncIterator[Item]:
            async for item in super().items():
                yield item
                yield Item(item.path, partial(self._load, item.path, "# Other"))

    assert counts(await ingest(Twice({"a": "# A"}), store, None)) == (1, 0, 0, 0, 0)
    document = store.document("handbook:a")
    assert document is not None
    assert document.title == "A"


async def test_a_source_is_asked_with_the_revision_it_gave(store: KnowledgeStore, run: Ingest) -> None:
    await run({"a": page("one", "etag-1")})
    second = Pages({"a": Unchanged()})
    assert counts(await run(second)) == (0, 0, 1, 0, 0)
    (known,) = store.versions("handbook").values()
    assert second.asked["a"] == known
    assert known.revision == "etag-1"
    assert counts(await run({"a": page("one", "etag-2")})) == (0, 0, 1, 0, 0)
    assert store.versions("handbook")["handbook:a"] == DocumentVersion(known.fingerprint, "etag-2")


async def test_another_embedder_has_everything_made_again_and_sources_not_asked_for_changes(
    store: KnowledgeStore, run: Ingest
) -> None:
    await run({"a": page("zebra", "etag-1")})
    assert store.nearest([1.0, 0.0], "letters", 5, Scope()) == []
    again = Pages({"a": page("zebra", "etag-1")})
    assert counts(await run(again, Letters())) == (0, 1, 0, 0, 0)
    assert again.asked["a"] is None
    assert [hit.chunk_id for hit in store.nearest([1.0, 0.0], "letters", 5, Scope())] == ["handbook:a#0"]
    assert counts(await run({"a": page("zebra", "etag-1")}, Letters("other"))) == (0, 1, 0, 0, 0)
    assert counts(await run({"a": page("zebra", "etag-1")}, Letters("other"))) == (0, 0, 1, 0, 0)


async def test_the_time_of_the_last_change_alone_changes_nothing(run: Ingest) -> None:
    await run({"a": LoadedItem(b"one", None, "a.md", "a", updated=datetime(2026, 1, 1, tzinfo=UTC))})
    later = LoadedItem(b"one", None, "a.md", "a", updated=datetime(2026, 2, 1, tzinfo=UTC))
    assert counts(await run({"a": later})) == (0, 0, 1, 0, 0)
    elsewhere = LoadedItem(b"one", None, "a.md", "elsewhere/a")
    assert counts(await run({"a": elsewhere})) == (0, 1, 0, 0, 0)


async def test_each_chunk_has_its_own_vector_and_small_documents_are_embedded_together(
    store: KnowledgeStore, run: Ingest
) -> None:
    pages: dict[str, Answer] = {f"{number}": f"# Page {number}\n\nplain" for number in range(100)}
    pages["57"] = "# Animals\n\nplain\n\n## Stripes\n\nzebra\n"
    embedder = Letters()
    report = await run(pages, embedder)
    assert (report.added, report.chunks) == (100, 101)
    assert sorted(len(batch) for batch in embedder.batches)[-1] > 10
    found = store.nearest([1.0, 0.0], "letters", 1, Scope())
    (chunk,) = store.load_chunks([found[0].chunk_id])
    assert (chunk.chunk.document_id, chunk.chunk.section) == ("handbook:57", "Animals > Stripes")
    assert any(text.startswith("Animals > Stripes\n") for batch in embedder.batches for text in batch)


async def test_a_long_document_is_embedded_in_parts_and_kept_as_one(store: KnowledgeStore, run: Ingest) -> None:
    long = "\n\n".join(f"## Section {number}\n\n{'word ' * 150}" for number in range(200))
    embedder = Letters()
    report = await run({"a": long}, embedder)
    assert report.chunks >= 200
    assert max(len(batch) for batch in embedder.batches) < 100
    assert sum(len(batch) for batch in embedder.batches) == report.chunks


async def test_an_embedder_that_fails_ends_it_with_what_was_kept_by_then(store: KnowledgeStore, run: Ingest) -> None:
    pages: dict[str, Answer] = {f"{number:03}": f"# Page {number}" for number in range(200)}
    with pytest.raises(EmbeddingsError, match="away"):
        await run(pages, Letters(fails_at="Page 150"))
    before = kept(store)
    assert 0 < len(before) < 200
    report = await run(pages, Letters())
    assert counts(report) == (200 - len(before), 0, len(before), 0, 0)


async def test_a_source_without_a_listing_removes_nothing(store: KnowledgeStore, run: Ingest) -> None:
    class Broken(Pages):
        async def items(self) -> AsyncIterator[Item]:
            raise SourceError("There is no listing.")
            yield

    await run({"a": "one"})
    with pytest.raises(SourceError, match="no listing"):
        await run(Broken({}))
    assert kept(store) == {"a"}


async def test_a_datasource_that_came_from_elsewhere_is_not_overwritten(store: KnowledgeStore, run: Ingest) -> None:
    await run({"a": "one"})
    with pytest.raises(
        DatasourceTakenError, match=r"'handbook' holds documents from https://docs.example, not from /d"
    ):
        await run(Pages({"b": "two"}, origin="/docs"))
    assert kept(store) == {"a"}


async def test_empty_documents_are_known_and_not_read_again(run: Ingest) -> None:
    assert counts(await run({"a": "", "b": "  \n\n"}, Letters())) == (2, 0, 0, 0, 0)
    assert counts(await run({"a": "", "b": "  \n\n"}, Letters())) == (0, 0, 2, 0, 0)


async def test_progress_ends_with_every_document(store: KnowledgeStore) -> None:
    reported: list[Progress] = []
    pages: dict[str, Answer] = {"a": "one", "b": Unchanged(), "c": SourceError("No."), "d": "two"}
    await ingest(Pages(pages), store, None, reported.append)
    assert [progress.documents for progress in reported] == sorted(progress.documents for progress in reported)
    assert (reported[-1].documents, reported[-1].total, reported[-1].chunks) == (4, None, 2)
    assert {progress.path for progress in reported} == set(pages)
