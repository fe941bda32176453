"""The search, over the product's own documentation with the real embedder, and over a few chunks made for a case."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder, EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.embeddings.offline import OfflineEmbedder
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import ingest
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import ProductDocs
from ai_platform_engineering.knowledge_bases.rag.results import SearchResults
from ai_platform_engineering.knowledge_bases.rag.searching import MAX_PER_DOCUMENT, search
from ai_platform_engineering.knowledge_bases.rag.source import Item
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStore, KnowledgeStoreError, Scope, Vector
from ai_platform_engineering.utils.errors import ReadableError
from tests.knowledge_bases.store_contract import EAST, EVERYWHERE, NEW_YEAR, NORTH, NORTH_EAST, UP, document, put
from tests.made_once import made_once

UNRELATED = [
    "zebra migration patterns in Kenya",
    "best pizza recipe with mozzarella",
    "who won the 1998 world cup",
    "symptoms of influenza in children",
    "how do I change a car tire",
    "quantum chromodynamics lattice simulation",
    "history of the Roman empire",
    "cheap flights from Berlin to Lisbon",
]
"""Questions that the documentation has no answer to."""


class Compass:
    """Knows in which direction a text lies."""

    name = "compass"

    def __init__(self, direction: Vector = EAST, problem: str | None = None) -> None:
        self._direction = direction
        self._problem = problem

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        if self._problem is not None:
            raise EmbeddingsError(self._problem)
        return self._direction


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KnowledgeStore]:
    with closing(SqliteKnowledgeStore(tmp_path / "knowledge.db")) as store:
        yield store


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return OfflineEmbedder()


class SomePages(ProductDocs):
    """The shorter pages of the documentation. The vectors of all pages take half a minute of CPU time."""

    PAGES: Final = frozenset(
        {"README.md", *(f"docs/{name}.md" for name in ("knowledge", "policy", "security", "web", "workflows"))}
    )

    async def items(self) -> AsyncIterator[Item]:
        async for item in super().items():
            if item.path in self.PAGES:
                yield item


@pytest.fixture(scope="module")
def documentation(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[KnowledgeStore]:
    def write(folder: Path) -> None:
        with closing(SqliteKnowledgeStore(folder / "knowledge.db")) as store:
            assert asyncio.run(ingest(SomePages(), store, embedder)).added == len(SomePages.PAGES)

    with closing(SqliteKnowledgeStore(made_once(tmp_path_factory, "documentation", write) / "knowledge.db")) as store:
        yield store


def texts(results: SearchResults) -> list[str]:
    return [result.snippet.replace("**", "") for result in results.results]


def paths(results: SearchResults) -> list[str]:
    return [result.document_id.partition(":")[2] for result in results.results]


@pytest.mark.long
@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("how do I run ArgoCD remotely?", "README.md"),
        ("how are secrets kept out of logs", "docs/security.md"),
        ("approve a destructive action", "docs/policy.md"),
        ("workflow steps in yaml", "docs/workflows.md"),
        ("how do I sign in with a browser", "docs/web.md"),
        ("RAG_SERVER_URL", "docs/knowledge.md"),
    ],
)
def test_the_documentation_answers(documentation: KnowledgeStore, embedder: Embedder, question: str, path: str) -> None:
    found = search(documentation, embedder, question, 3, EVERYWHERE)
    assert path in paths(found)
    assert found.note is None


@pytest.mark.long
@pytest.mark.parametrize("question", UNRELATED)
def test_what_the_documentation_does_not_have_is_not_found(
    documentation: KnowledgeStore, embedder: Embedder, question: str
) -> None:
    assert search(documentation, embedder, question, 5, EVERYWHERE).results == []
    assert search(documentation, None, question, 5, EVERYWHERE).results == []


@pytest.mark.slow
def test_a_page_is_found_among_all_pages_of_the_documentation(store: KnowledgeStore, embedder: Embedder) -> None:
    asyncio.run(ingest(ProductDocs(), store, embedder))
    questions = {
        "how do I run ArgoCD remotely?": "README.md",
        "which port does the supervisor listen on": "docs/deploy.md",
        "how are secrets kept out of logs": "docs/operate.md",
        "approve a destructive action": "docs/configuration.md",
        "docker compose": "docs/deploy.md",
        "workflow steps in yaml": "docs/workflows.md",
        "how can I add my own agent": "docs/agents.md",
        "RAG_SERVER_URL": "docs/configuration.md",
    }
    found = {question: paths(search(store, embedder, question, 3, EVERYWHERE)) for question in questions}
    assert {question: path for question, path in questions.items() if path not in found[question]} == {}, found
    for question in UNRELATED:
        assert search(store, embedder, question, 5, EVERYWHERE).results == [], question
        assert search(store, None, question, 5, EVERYWHERE).results == [], question


def test_meaning_finds_what_words_do_not(store: KnowledgeStore, embedder: Embedder) -> None:
    passages = ["Take a backup of the database every night.", "Cats sleep for most of the day."]
    put(store, document("a.md"), *passages, vectors=embedder.embed(passages), model=embedder.name)
    question = "how do felines rest?"
    assert search(store, None, question, 3, EVERYWHERE).results == []
    assert texts(search(store, embedder, question, 3, EVERYWHERE)) == passages[1:]


def test_a_result_says_where_it_is_from(store: KnowledgeStore) -> None:
    put(store, document("guides/a.md", "Clusters", updated=NEW_YEAR), "Pods run on nodes.")
    [result] = search(store, None, "which nodes?", 5, EVERYWHERE).results
    assert result.model_dump() == {
        "document_id": "docs:guides/a.md",
        "title": "Clusters",
        "section": "Clusters > Part",
        "datasource": "docs",
        "link": "https://docs.test/guides/a.md",
        "score": 1.0,
        "snippet": "Pods run on **nodes**.",
        "updated": NEW_YEAR,
    }


def test_what_words_and_meaning_agree_on_comes_first(store: KnowledgeStore) -> None:
    put(store, document("near.md"), "something else", vectors=[EAST], model="compass")
    put(store, document("both.md"), "about pods in general", vectors=[NORTH_EAST], model="compass")
    put(store, document("word.md"), "pods")
    found = search(store, Compass(), "pods", 5, EVERYWHERE)
    assert paths(found) == ["both.md", "near.md", "word.md"]
    scores = [result.score for result in found.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 and score == round(score, 4) for score in scores)


def test_a_document_does_not_hide_the_others(store: KnowledgeStore) -> None:
    put(store, document("a.md"), *["pods and pods"] * 10)
    put(store, document("b.md"), "a long text in which the word pods stands among many others, once")
    assert paths(search(store, None, "pods", 5, EVERYWHERE)) == ["a.md"] * MAX_PER_DOCUMENT + ["b.md"]


def test_no_more_than_asked_for(store: KnowledgeStore) -> None:
    for number in range(9):
        put(store, document(f"{number}.md"), "pods")
    assert len(search(store, None, "pods", 4, EVERYWHERE).results) == 4


def test_only_where_it_was_asked_to_look(store: KnowledgeStore) -> None:
    for name in ("docs", "wiki"):
        put(store, document("a.md", datasource=name), "pods", vectors=[EAST], model="compass")
    found = search(store, Compass(), "pods", 5, Scope(datasource="wiki"))
    assert [result.datasource for result in found.results] == ["wiki"]


def test_one_word_of_many_is_not_enough(store: KnowledgeStore) -> None:
    put(store, document("a.md"), "the migration of tasks", vectors=[NORTH], model="compass")
    assert search(store, Compass(UP), "zebra migration patterns in Kenya", 5, EVERYWHERE).results == []
    assert search(store, None, "zebra migration patterns in Kenya", 5, EVERYWHERE).results == []
    assert len(search(store, None, "migration of things", 5, EVERYWHERE).results) == 1


def test_all_words_are_enough_whatever_the_vectors_say(store: KnowledgeStore) -> None:
    put(store, document("a.md"), "error 0x80070005", vectors=[NORTH], model="compass")
    assert len(search(store, Compass(UP), "0x80070005", 5, EVERYWHERE).results) == 1


def test_an_embedder_that_fails_leaves_the_words(store: KnowledgeStore) -> None:
    put(store, document("a.md"), "pods", vectors=[EAST], model="compass")
    found = search(store, Compass(problem="The service is down."), "pods", 5, EVERYWHERE)
    assert paths(found) == ["a.md"]
    assert found.note == "Search was by keywords alone: The service is down."


def test_documents_without_vectors_are_found_by_words_and_it_is_said(store: KnowledgeStore) -> None:
    put(store, document("a.md"), "pods", vectors=[EAST], model="another model")
    found = search(store, Compass(), "pods", 5, EVERYWHERE)
    assert paths(found) == ["a.md"]
    assert found.note == "Search was by keywords alone: no vectors of compass are stored; the next ingest creates them."


def test_what_has_no_vector_yet_is_judged_by_its_words(store: KnowledgeStore) -> None:
    put(store, document("far.md"), "about cats", vectors=[NORTH], model="compass")
    put(store, document("new.md"), "restart the gateway on the host")
    found = search(store, Compass(), "restart the broken gateway", 5, EVERYWHERE)
    assert paths(found) == ["new.md"]


@pytest.mark.long
def test_half_a_sign_does_not_keep_from_the_rest(documentation: KnowledgeStore, embedder: Embedder) -> None:
    found = search(documentation, embedder, "\ud83d how do I run ArgoCD remotely?", 3, Scope())
    assert "README.md" in paths(found)
    assert "ArgoCD" in found.model_dump_json()


def test_a_reranker_has_the_last_word(store: KnowledgeStore) -> None:
    put(store, document("a.md"), "pods pods pods")
    put(store, document("b.md"), "pods, as an answer")
    put(store, document("c.md"), "pods pods")

    def by_answer(query: str, passages: Sequence[str]) -> list[float]:
        assert query == "pods"
        return [1.5 if "answer" in passage else 0.25 for passage in passages]

    found = search(store, None, "pods", 2, EVERYWHERE, by_answer)
    assert paths(found)[0] == "b.md"
    assert [result.score for result in found.results] == [1.0, 0.25]
    assert paths(found)[1] == paths(search(store, None, "pods", 1, EVERYWHERE))[0]


def test_a_reranker_that_fails_leaves_the_order(store: KnowledgeStore) -> None:
    put(store, document("a.md"), "pods pods pods")
    put(store, document("b.md"), "pods, as an answer")

    def failing(query: str, passages: Sequence[str]) -> list[float]:
        raise ReadableError("The reranker at http://rerank.test does not answer.")

    found = search(store, None, "pods", 2, EVERYWHERE, failing)
    assert found.results == search(store, None, "pods", 2, EVERYWHERE).results
    assert found.note is not None
    assert "http://rerank.test does not answer" in found.note


def test_a_store_that_fails_is_an_error_and_not_an_empty_result(store: KnowledgeStore) -> None:
    store.close()
    with pytest.raises(KnowledgeStoreError, match="closed"):
        search(store, None, "pods", 5, EVERYWHERE)


@pytest.mark.long
@pytest.mark.parametrize("query", ["", "?", "\x00", "日本語"])
def test_a_query_without_words_finds_nothing(documentation: KnowledgeStore, embedder: Embedder, query: str) -> None:
    assert search(documentation, None, query, 5, EVERYWHERE) == SearchResults(query=query, results=[])
    assert search(documentation, embedder, query, 5, EVERYWHERE) == SearchResults(query=query, results=[])


@pytest.mark.long
def test_a_query_of_nothing_but_common_words_is_searched_for(documentation: KnowledgeStore) -> None:
    assert len(search(documentation, None, "the", 5, EVERYWHERE).results) == 5
