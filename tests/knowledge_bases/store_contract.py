"""What every store has to do, whatever it keeps its things in.

A test module subclasses `StoreContract` and gives it two fixtures: `store`, an empty one, and `open_another`, which
opens the same one again as another process would, and closes it at the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Datasource, Document
from ai_platform_engineering.knowledge_bases.rag.stores.store import (
    DocumentVersion,
    FoundChunk,
    Hit,
    KnowledgeStore,
    KnowledgeStoreError,
    Scope,
)

OpenAnother = Callable[[], KnowledgeStore]

MODEL = "model-1"
EVERYWHERE = Scope()
NEW_YEAR = datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=UTC)

EAST = (1.0, 0.0, 0.0)
NORTH = (0.0, 1.0, 0.0)
UP = (0.0, 0.0, 1.0)
NORTH_EAST = (0.8, 0.6, 0.0)
WEST = (-1.0, 0.0, 0.0)

WHATEVER_PEOPLE_TYPE = [
    "",
    " ",
    "?",
    '"',
    "'",
    '""',
    '"unbalanced',
    "it's",
    "(",
    ")(",
    "*",
    "pod*",
    "AND",
    "OR NOT",
    "a AND (b OR",
    "NEAR(pods nodes, 2)",
    "title:pods",
    "{title section}: pods",
    "^pods",
    "-pods",
    "+pods",
    "pods & nodes | !services",
    "pods <-> nodes",
    "pods:*",
    ";DROP TABLE chunk;--",
    "%",
    "_",
    "\\",
    "\\' OR 1=1",
    "\x00pods\x00",
    "\n\t\r",
    "ünïcödé ÄÖÜ ß İ",
    "日本語のテキスト",
    "🙂 👩‍👩‍👧",
    "é",
    "\u200b\u202e",
    "$1 ${2} :name ?1 @x %s {}",
    "pods " * 3000,
    "x" * 5000,
]

SCOPES: list[tuple[Scope, set[str]]] = [
    (Scope(), {"docs:a/x.md", "docs:a/y.md", "docs:b.md", "wiki:a/x.md"}),
    (Scope(datasource="docs"), {"docs:a/x.md", "docs:a/y.md", "docs:b.md"}),
    (Scope(datasource="nowhere"), set()),
    (Scope(document_id="docs:a/x.md"), {"docs:a/x.md"}),
    (Scope(document_id="docs:nothing"), set()),
    (Scope(path_prefix="a/"), {"docs:a/x.md", "docs:a/y.md", "wiki:a/x.md"}),
    (Scope(path_prefix="A/"), set()),
    (Scope(path_prefix="%"), set()),
    (Scope(path_prefix="_/"), set()),
    (Scope(path_prefix=""), {"docs:a/x.md", "docs:a/y.md", "docs:b.md", "wiki:a/x.md"}),
    (Scope(updated_after=NEW_YEAR), {"docs:a/y.md"}),
    (Scope(updated_after=NEW_YEAR - timedelta(microseconds=1)), {"docs:a/x.md", "docs:a/y.md"}),
    (Scope(datasource="docs", path_prefix="a/x"), {"docs:a/x.md"}),
    (Scope("docs", "docs:a/y.md", "a/", NEW_YEAR), {"docs:a/y.md"}),
    (Scope("wiki", "docs:a/y.md", "a/", NEW_YEAR), set()),
]


def document(path: str, title: str = "Untitled", datasource: str = "docs", updated: datetime | None = None) -> Document:
    return Document(datasource, path, title, f"# {title}\n\nAll of {path}.", f"https://docs.test/{path}", updated)


def put(
    store: KnowledgeStore,
    of: Document,
    *texts: str,
    vectors: Sequence[Sequence[float]] | None = None,
    model: str = MODEL,
) -> list[str]:
    """Keeps the document with one chunk per text; gives the ids of the chunks."""
    chunks = [Chunk(of.document_id, index, f"{of.title} > Part", text) for index, text in enumerate(texts)]
    store.put(of, DocumentVersion("fingerprint"), chunks, vectors, model)
    return [chunk.chunk_id for chunk in chunks]


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.chunk_id for hit in hits]


class StoreContract:
    def test_text_without_spaces_is_found_by_parts_of_it(self, store: KnowledgeStore) -> None:
        put(
            store,
            document("a.md", "ゲートウェイの再起動"),
            "オンコール担当のホストで gatewayctl restart を実行します。",
        )
        put(store, document("b.md", "日志"), "网关重启之后请检查日志。")
        for query, path in {
            "再起動": "a",
            "ホスト": "a",
            "ゲートウェイを再起動する方法は?": "a",
            "如何重启网关": "b",
        }.items():
            assert ids(store.lexical(query, 10, EVERYWHERE))[:1] == [f"docs:{path}.md#0"], query
        assert store.lexical("監視", 10, EVERYWHERE) == []
        store.remove(["docs:a.md", "docs:b.md"])
        assert store.lexical("再起動 重启", 10, EVERYWHERE) == []

    def test_a_new_store_is_empty(self, store: KnowledgeStore) -> None:
        assert store.datasources() == []
        assert store.versions("docs") == {}
        assert store.document("docs:a.md") is None
        assert store.lexical("pods", 5, EVERYWHERE) == []
        assert store.nearest(EAST, MODEL, 5, EVERYWHERE) == []
        assert store.load_chunks(["docs:a.md#0"]) == []
        assert store.remove_datasource("docs") is False
        store.remove([])
        store.remove(["docs:a.md"])

    @pytest.mark.parametrize(
        "path",
        ["a.md", "guides/how to.md", "https://docs.test/a?b=c&d#e", 'it\'s 100% "this"; -- \\ file.md', "ünï/日本.md"],
    )
    def test_a_document_comes_back_as_it_was(self, store: KnowledgeStore, path: str) -> None:
        kept = Document("docs", path, "Tïtle", "# Text\n\nwith `code` and 日本 🙂\n", "https://x.test/ü", NEW_YEAR)
        [chunk_id] = put(store, kept, "something about pods")
        assert store.document(kept.document_id) == kept
        assert ids(store.lexical("pods", 5, EVERYWHERE)) == [chunk_id]
        assert store.load_chunks([chunk_id]) == [
            FoundChunk(
                Chunk(kept.document_id, 0, "Tïtle > Part", "something about pods"),
                "docs",
                "Tïtle",
                "https://x.test/ü",
                NEW_YEAR,
            )
        ]

    def test_times_come_back_in_utc(self, store: KnowledgeStore) -> None:
        there = NEW_YEAR.astimezone(timezone(timedelta(hours=-7)))
        put(store, document("a.md", updated=there), "text")
        kept = store.document("docs:a.md")
        assert kept is not None
        assert kept.updated == NEW_YEAR
        assert kept.updated.utcoffset() == timedelta(0)

    def test_a_document_without_chunks_is_kept(self, store: KnowledgeStore) -> None:
        put(store, document("empty.md"), vectors=[])
        assert store.document("docs:empty.md") == document("empty.md")
        assert list(store.versions("docs")) == ["docs:empty.md"]

    def test_datasources_are_listed_by_name_with_what_is_in_them(self, store: KnowledgeStore) -> None:
        put(store, document("b.md", datasource="wiki"), "one")
        put(store, document("a.md", updated=NEW_YEAR), "one", "two")
        put(store, document("b.md", updated=NEW_YEAR - timedelta(days=1)), "three")
        store.set_origin("docs", "/srv/docs")
        store.set_origin("planned", "https://planned.test")
        assert store.datasources() == [
            Datasource("docs", "/srv/docs", documents=2, chunks=3, updated=NEW_YEAR),
            Datasource("planned", "https://planned.test", documents=0, chunks=0, updated=None),
            Datasource("wiki", "", documents=1, chunks=1, updated=None),
        ]

    def test_the_origin_of_a_datasource_may_change(self, store: KnowledgeStore) -> None:
        store.set_origin("docs", "/old")
        put(store, document("a.md"), "text")
        store.set_origin("docs", "/new")
        [datasource] = store.datasources()
        assert datasource == Datasource("docs", "/new", documents=1, chunks=1, updated=None)

    def test_known_are_the_documents_of_one_datasource(self, store: KnowledgeStore) -> None:
        store.put(document("a.md"), DocumentVersion("f1", '"etag"'), [], None, MODEL)
        store.put(document("b.md"), DocumentVersion("f2"), [], None, MODEL)
        store.put(document("a.md", datasource="wiki"), DocumentVersion("f3"), [], None, MODEL)
        assert store.versions("docs") == {
            "docs:a.md": DocumentVersion("f1", '"etag"'),
            "docs:b.md": DocumentVersion("f2"),
        }
        assert store.versions("wiki") == {"wiki:a.md": DocumentVersion("f3")}

    def test_a_revision_is_noted_without_touching_the_document(self, store: KnowledgeStore) -> None:
        [chunk_id] = put(store, document("a.md"), "pods", vectors=[EAST])
        store.update_version("docs:a.md", DocumentVersion("fingerprint", "rev-2"))
        store.update_version("docs:unknown.md", DocumentVersion("x", "y"))
        assert store.versions("docs") == {"docs:a.md": DocumentVersion("fingerprint", "rev-2")}
        assert store.document("docs:a.md") == document("a.md")
        assert ids(store.lexical("pods", 5, EVERYWHERE)) == ids(store.nearest(EAST, MODEL, 5, EVERYWHERE)) == [chunk_id]

    def test_a_document_takes_the_place_of_what_was_kept_of_it(self, store: KnowledgeStore) -> None:
        put(store, document("a.md", "Volcanoes"), "lava", "magma", "ash", vectors=[EAST, NORTH, UP])
        store.nearest(EAST, MODEL, 5, EVERYWHERE)
        put(store, document("a.md", "Glaciers", updated=NEW_YEAR), "ice", "snow", vectors=[NORTH_EAST, WEST])
        for gone in ("volcanoes", "lava", "magma", "ash"):
            assert store.lexical(gone, 5, EVERYWHERE) == []
        assert ids(store.lexical("snow", 5, EVERYWHERE)) == ["docs:a.md#1"]
        assert set(ids(store.lexical("glaciers", 5, EVERYWHERE))) == {"docs:a.md#0", "docs:a.md#1"}
        assert ids(store.nearest(EAST, MODEL, 5, EVERYWHERE)) == ["docs:a.md#0", "docs:a.md#1"]
        assert store.load_chunks(["docs:a.md#2"]) == []
        assert store.document("docs:a.md") == document("a.md", "Glaciers", updated=NEW_YEAR)
        assert store.datasources() == [Datasource("docs", "", documents=1, chunks=2, updated=NEW_YEAR)]

    def test_a_document_that_cannot_be_kept_whole_leaves_what_was_there(self, store: KnowledgeStore) -> None:
        put(store, document("a.md", "Old"), "old words", vectors=[EAST])
        twice = [Chunk("docs:a.md", 0, "", "new words"), Chunk("docs:a.md", 0, "", "newer words")]
        with pytest.raises(KnowledgeStoreError):
            store.put(document("a.md", "New"), DocumentVersion("new"), twice, [EAST, NORTH], MODEL)
        with pytest.raises(ValueError, match="docs:a"):
            store.put(document("a.md", "New"), DocumentVersion("new"), twice[:1], [EAST, NORTH], MODEL)
        assert store.document("docs:a.md") == document("a.md", "Old")
        assert store.versions("docs") == {"docs:a.md": DocumentVersion("fingerprint")}
        assert store.lexical("new newer", 5, EVERYWHERE) == []
        assert ids(store.lexical("old", 5, EVERYWHERE)) == ["docs:a.md#0"]
        assert store.nearest(EAST, MODEL, 5, EVERYWHERE) == [Hit("docs:a.md#0", pytest.approx(1, abs=1e-3))]

    def test_removed_documents_are_gone_from_everything(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), "pods", vectors=[EAST])
        put(store, document("b.md"), "pods", vectors=[EAST])
        put(store, document("c.md"), "pods", vectors=[EAST])
        store.nearest(EAST, MODEL, 5, EVERYWHERE)
        store.remove(["docs:a.md", "docs:c.md", "docs:never-there.md"])
        assert store.document("docs:a.md") is None
        assert list(store.versions("docs")) == ["docs:b.md"]
        assert ids(store.lexical("pods", 5, EVERYWHERE)) == ["docs:b.md#0"]
        assert ids(store.nearest(EAST, MODEL, 5, EVERYWHERE)) == ["docs:b.md#0"]
        assert [chunk.chunk.chunk_id for chunk in store.load_chunks(["docs:a.md#0", "docs:b.md#0"])] == ["docs:b.md#0"]

    def test_a_datasource_stays_when_its_last_document_goes(self, store: KnowledgeStore) -> None:
        store.set_origin("docs", "/srv/docs")
        put(store, document("a.md", updated=NEW_YEAR), "pods")
        store.remove(["docs:a.md"])
        assert store.datasources() == [Datasource("docs", "/srv/docs", documents=0, chunks=0, updated=None)]

    def test_a_datasource_is_removed_with_all_that_is_in_it(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), "pods", vectors=[EAST])
        put(store, document("a.md", datasource="wiki"), "pods", vectors=[EAST])
        assert store.remove_datasource("docs") is True
        assert store.remove_datasource("docs") is False
        assert [datasource.name for datasource in store.datasources()] == ["wiki"]
        assert store.versions("docs") == {}
        assert store.document("docs:a.md") is None
        assert ids(store.lexical("pods", 5, EVERYWHERE)) == ["wiki:a.md#0"]
        assert ids(store.nearest(EAST, MODEL, 5, EVERYWHERE)) == ["wiki:a.md#0"]

    def test_chunks_come_in_the_order_asked_for(self, store: KnowledgeStore) -> None:
        first, second, third = put(store, document("a#b.md"), "one", "two", "three")
        asked = [third, "docs:a#b.md#3", "docs:a#b.md", "#", "", "docs:a#b.md#x", "docs:a#b.md#-1", first, second]
        assert [found.chunk.text for found in store.load_chunks(asked)] == ["three", "one", "two"]

    def test_words_are_found_in_title_section_and_text(self, store: KnowledgeStore) -> None:
        of = document("a.md", "Volcanoes")
        store.put(of, DocumentVersion("f"), [Chunk(of.document_id, 0, "Volcanoes > Glaciers", "Rivers")], None, MODEL)
        put(store, document("b.md"), "nothing of that")
        for word in ("volcanoes", "glaciers", "rivers", "RIVERS", "river"):
            assert ids(store.lexical(word, 5, EVERYWHERE)) == ["docs:a.md#0"]
        assert store.lexical("oceans", 5, EVERYWHERE) == []

    def test_other_forms_of_a_word_are_found(self, store: KnowledgeStore) -> None:
        [chunk_id] = put(store, document("a.md"), "Deploying the connected services")
        for form in ("deploy", "deploys", "deployed", "connection", "connecting", "service"):
            assert ids(store.lexical(form, 5, EVERYWHERE)) == [chunk_id]

    def test_names_of_settings_and_files_are_found(self, store: KnowledgeStore) -> None:
        [chunk_id, _] = put(store, document("a.md"), "Set `RAG_SERVER_URL`, see docs/deploy.md.", "Something else.")
        for name in ("RAG_SERVER_URL", "rag_server_url", "docs/deploy.md", "`RAG_SERVER_URL`"):
            assert store.lexical(name, 5, EVERYWHERE)[0].chunk_id == chunk_id

    def test_more_and_rarer_words_come_first(self, store: KnowledgeStore) -> None:
        common = put(store, document("a.md"), *["the cluster and its usual words"] * 8)
        [rare] = put(store, document("b.md"), "the scheduler and its usual words")
        [both] = put(store, document("c.md"), "the cluster scheduler and its words")
        hits = store.lexical("cluster scheduler", 20, EVERYWHERE)
        assert ids(hits) == [both, rare, *common]
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(hit.score > 0 for hit in hits)

    def test_a_title_says_more_than_the_text(self, store: KnowledgeStore) -> None:
        put(store, document("a.md", "Networks"), "about rollback of things and of other things as well")
        [in_title] = put(store, document("b.md", "Rollback"), "about networks of things and of other things as well")
        for number in range(8):
            put(store, document(f"other-{number}.md", "Others"), "about things and about other things as well")
        assert store.lexical("rollback", 5, EVERYWHERE)[0].chunk_id == in_title

    def test_the_words_of_any_question_do_not_decide(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), "how do I do this and what is it that I do with the others")
        [chunk_id] = put(store, document("b.md"), "Certificates are renewed at night.")
        assert ids(store.lexical("how do I renew the certificates?", 5, EVERYWHERE)) == [chunk_id]

    def test_whatever_people_type_is_words(self, store: KnowledgeStore) -> None:
        chunk_ids = put(store, document("a.md", "Kubernetes"), "pods run on nodes", "services are found by name")
        for query in WHATEVER_PEOPLE_TYPE:
            hits = ids(store.lexical(query, 5, EVERYWHERE))
            assert set(hits) <= set(chunk_ids), query
            assert ("pods" not in query) or chunk_ids[0] in hits, query
        assert ids(store.lexical("pods", 5, EVERYWHERE)) == chunk_ids[:1]

    def test_punctuation_finds_nothing(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), "pods? !!! ... *** (())")
        for query in ("", "?", "!!! ... ---", "***", '"" ""', "(())"):
            assert store.lexical(query, 5, EVERYWHERE) == [], query

    def test_no_more_hits_than_asked_for(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), *["pods"] * 20, vectors=[EAST] * 20)
        for count in (0, 1, 7, 20):
            assert len(store.lexical("pods", count, EVERYWHERE)) == count
            assert len(store.nearest(EAST, MODEL, count, EVERYWHERE)) == count
        assert len(store.lexical("pods", 100, EVERYWHERE)) == len(store.nearest(EAST, MODEL, 100, EVERYWHERE)) == 20

    def test_the_nearest_come_first_with_their_cosine(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), "a", "b", "c", "d", vectors=[WEST, NORTH_EAST, NORTH, EAST])
        hits = store.nearest(EAST, MODEL, 10, EVERYWHERE)
        assert ids(hits) == ["docs:a.md#3", "docs:a.md#1", "docs:a.md#2", "docs:a.md#0"]
        assert [hit.score for hit in hits] == pytest.approx([1, 0.8, 0, -1], abs=1e-3)

    def test_vectors_of_other_models_do_not_compare(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), "a", vectors=[EAST], model="model-1")
        put(store, document("b.md"), "b", vectors=[EAST], model="model-2")
        put(store, document("c.md"), "c", vectors=[(1.0, 0.0)], model="model-1")
        put(store, document("d.md"), "d", vectors=None)
        assert ids(store.nearest(EAST, "model-1", 5, EVERYWHERE)) == ["docs:a.md#0"]
        assert ids(store.nearest(EAST, "model-2", 5, EVERYWHERE)) == ["docs:b.md#0"]
        assert ids(store.nearest((1.0, 0.0), "model-1", 5, EVERYWHERE)) == ["docs:c.md#0"]
        assert store.nearest(EAST, "model-3", 5, EVERYWHERE) == []

    def test_a_document_may_lose_its_vectors(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), "pods", vectors=[EAST])
        store.nearest(EAST, MODEL, 5, EVERYWHERE)
        put(store, document("a.md"), "pods", vectors=None)
        assert store.nearest(EAST, MODEL, 5, EVERYWHERE) == []
        assert ids(store.lexical("pods", 5, EVERYWHERE)) == ["docs:a.md#0"]

    def test_a_scope_is_where_to_look(self, store: KnowledgeStore) -> None:
        put(store, document("a/x.md", updated=NEW_YEAR), "pods", vectors=[EAST])
        put(store, document("a/y.md", updated=NEW_YEAR + timedelta(days=1)), "pods", vectors=[EAST])
        put(store, document("b.md"), "pods", vectors=[EAST])
        put(store, document("a/x.md", datasource="wiki"), "pods", vectors=[EAST])
        for scope, expected in SCOPES:
            for hits in (store.lexical("pods", 9, scope), store.nearest(EAST, MODEL, 9, scope)):
                assert {hit.chunk_id.removesuffix("#0") for hit in hits} == expected, scope

    def test_a_scope_finds_what_is_far_down_in_the_whole(self, store: KnowledgeStore) -> None:
        put(store, document("a.md"), *["pods and more pods"] * 120, vectors=[EAST] * 120)
        [chunk_id] = put(store, document("z.md"), "long text with other words and one about pods", vectors=[NORTH])
        only = Scope(document_id="docs:z.md")
        assert ids(store.lexical("pods", 3, only)) == ids(store.nearest(EAST, MODEL, 3, only)) == [chunk_id]

    def test_equal_scores_are_ordered_by_chunk_id(self, store: KnowledgeStore) -> None:
        names = [f"{letter}.md" for letter in "hcagbfed"]
        for name in names:
            put(store, document(name), "the same text about pods", vectors=[NORTH_EAST])
        expected = [f"docs:{name}#0" for name in sorted(names)]
        assert ids(store.lexical("pods", 20, EVERYWHERE)) == ids(store.nearest(EAST, MODEL, 20, EVERYWHERE)) == expected
        assert ids(store.lexical("pods", 3, EVERYWHERE)) == ids(store.nearest(EAST, MODEL, 3, EVERYWHERE))
        assert ids(store.lexical("pods", 3, EVERYWHERE)) == expected[:3]

    def test_the_same_content_gives_the_same_answer_whatever_order_it_came_in(self, store: KnowledgeStore) -> None:
        chance = random.Random(7)  # noqa: S311
        vocabulary = ["pods", "nodes", "services", "volumes", "ingress", "secrets", "roles", "jobs"]
        contents = {
            document(f"{number}.md", chance.choice(vocabulary)): [
                " ".join(chance.choices(vocabulary, k=chance.randint(3, 12))) for _ in range(chance.randint(1, 4))
            ]
            for number in range(30)
        }
        turns = {text: chance.choice([EAST, NORTH, UP, NORTH_EAST]) for texts in contents.values() for text in texts}

        def answers() -> list[list[Hit]]:
            words = [store.lexical(query, 10, EVERYWHERE) for query in (*vocabulary, "pods nodes", "secrets of jobs")]
            return [*words, store.nearest(NORTH_EAST, MODEL, 10, EVERYWHERE), store.nearest(UP, MODEL, 10, EVERYWHERE)]

        def put_all(documents: Sequence[Document]) -> None:
            for of in documents:
                put(store, of, *contents[of], vectors=[turns[text] for text in contents[of]])

        put_all(list(contents))
        before = answers()
        some = chance.sample(list(contents), 12)
        for of in some:
            put(store, of, "something else about pods for a while", vectors=[EAST])
        assert answers() != before
        store.remove([of.document_id for of in some[:6]])
        put_all(chance.sample(some, len(some)))
        after = answers()
        store.optimize()
        assert answers() == after
        assert [ids(hits) for hits in after] == [ids(hits) for hits in before]
        for one, other in zip(after, before, strict=True):
            assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other])

    def test_another_process_sees_the_changes(self, store: KnowledgeStore, open_another: OpenAnother) -> None:
        another = open_another()
        assert another.nearest(EAST, MODEL, 5, EVERYWHERE) == []
        [chunk_id] = put(store, document("a.md"), "pods", vectors=[EAST])
        assert ids(another.lexical("pods", 5, EVERYWHERE)) == [chunk_id]
        assert ids(another.nearest(EAST, MODEL, 5, EVERYWHERE)) == [chunk_id]
        put(another, document("b.md"), "pods", vectors=[NORTH])
        assert ids(store.nearest(NORTH, MODEL, 5, EVERYWHERE)) == ["docs:b.md#0", chunk_id]
        store.remove(["docs:a.md"])
        assert ids(another.nearest(EAST, MODEL, 5, EVERYWHERE)) == ["docs:b.md#0"]
        assert store.datasources() == another.datasources()

    def test_what_was_kept_is_there_after_opening_again(self, store: KnowledgeStore, open_another: OpenAnother) -> None:
        [chunk_id] = put(store, document("a.md"), "pods", vectors=[EAST])
        store.set_origin("docs", "/srv/docs")
        before = (store.datasources(), store.versions("docs"), store.load_chunks([chunk_id]))
        store.close()
        again = open_another()
        assert (again.datasources(), again.versions("docs"), again.load_chunks([chunk_id])) == before
        assert ids(again.nearest(EAST, MODEL, 5, EVERYWHERE)) == ids(again.lexical("pods", 5, EVERYWHERE)) == [chunk_id]

    def test_many_threads_use_it_at_once(self, store: KnowledgeStore) -> None:
        put(store, document("first.md"), "pods", vectors=[EAST])

        def write(number: int) -> None:
            put(store, document(f"{number % 8}.md"), "pods and nodes", f"take {number}", vectors=[NORTH, UP])

        def read(_: int) -> None:
            assert "docs:first.md#0" in ids(store.lexical("pods", 20, EVERYWHERE))
            assert ids(store.nearest(EAST, MODEL, 1, EVERYWHERE)) == ["docs:first.md#0"]
            # Whole documents only, at every moment: two chunks each.
            [datasource] = store.datasources()
            assert datasource.chunks == 2 * datasource.documents - 1

        with ThreadPoolExecutor(8) as threads:
            work = [threads.submit(act, number) for number in range(40) for act in (write, read)]
            for done in work:
                done.result()
        assert len(store.versions("docs")) == 9
        assert len(store.nearest(NORTH, MODEL, 100, EVERYWHERE)) == 17

    def test_a_closed_store_says_so(self, store: KnowledgeStore) -> None:
        store.close()
        store.close()
        with pytest.raises(KnowledgeStoreError, match="closed"):
            store.datasources()
        with pytest.raises(KnowledgeStoreError, match="closed"):
            put(store, document("a.md"), "pods")
