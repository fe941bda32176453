"""The reranker, over HTTP: what it is asked, and every way in which it does not answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest

from ai_platform_engineering.knowledge_bases.rag.reranking import Reranker, RerankError, reranker_of
from ai_platform_engineering.settings import load_settings

SECRET = "rr-do-not-tell-anyone"
TEXTS = ["apples", "pears", "plums"]


class RerankServer(ThreadingHTTPServer):
    daemon_threads = True
    asked: list[dict[str, Any]]
    keys: list[str | None]
    answer: bytes = b"{}"
    status: int = 200
    pause: float = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v2/rerank"

    def rate(self, *scores: tuple[int, float]) -> None:
        results = [{"index": index, "relevance_score": score, "document": {"text": "x"}} for index, score in scores]
        self.answer = json.dumps({"id": "1", "results": results, "meta": {}}).encode()


@pytest.fixture
def server() -> Iterator[RerankServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            running.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            running.keys.append(self.headers["Authorization"])
            self.send_response(running.status)
            self.end_headers()
            try:
                for position in range(len(running.answer)) if running.pause else ():
                    self.wfile.write(running.answer[position : position + 1])
                    sleep(running.pause)
                self.wfile.write(b"" if running.pause else running.answer)
            except OSError:
                pass

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            pass

    running = RerankServer(("127.0.0.1", 0), Handler)
    running.asked, running.keys = [], []
    thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def test_none_is_configured_by_default() -> None:
    assert reranker_of(load_settings({}, env_file=None)) is None


def test_each_text_gets_its_score_whatever_order_they_come_in(server: RerankServer) -> None:
    server.rate((2, 0.9), (0, 0.25), (1, 0.1))
    variables = {"RERANK_URL": server.url, "RERANK_MODEL_NAME": "rerank-v3", "RERANK_API_KEY": SECRET}
    rerank = reranker_of(load_settings(variables, env_file=None))
    assert rerank is not None
    assert rerank("stone fruit", TEXTS) == [0.25, 0.1, 0.9]
    assert server.asked == [{"model": "rerank-v3", "query": "stone fruit", "documents": TEXTS, "top_n": 3}]
    assert server.keys == [f"Bearer {SECRET}"]


def test_what_is_left_out_answers_worst(server: RerankServer) -> None:
    server.rate((1, 0.5), (7, 0.9))
    assert Reranker(server.url)("q", TEXTS) == [0.0, 0.5, 0.0]
    assert "model" not in server.asked[0]
    assert server.keys == [None]


def fails(server: RerankServer, answer: bytes, status: int = 200) -> None:
    server.answer, server.status = answer, status


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (lambda server: fails(server, b"no", 500), "answered with status 500"),
        (lambda server: fails(server, b"", 302), "answered with status 302"),
        (lambda server: fails(server, b"<html>"), "sent a response that is not one of a rerank API"),
        (
            lambda server: fails(server, b'{"results": [{"index": 0}]}'),
            "sent a response that is not one of a rerank API",
        ),
        (
            lambda server: fails(server, b'{"results": [{"index": 0, "relevance_score": NaN}]}'),
            "sent a response that is not one of a rerank API",
        ),
        (lambda server: fails(server, b" " * 1_100_000), "sent a response that is too long"),
    ],
)
def test_no_order_is_an_error_that_says_why(
    server: RerankServer, prepare: Callable[[RerankServer], None], problem: str
) -> None:
    prepare(server)
    with pytest.raises(RerankError) as caught:
        Reranker(server.url, key=SECRET)("q", TEXTS)
    assert str(caught.value) == f"The reranker at {server.url} {problem}."


def test_an_answer_that_trickles_in_is_not_waited_for(server: RerankServer) -> None:
    server.answer, server.pause = b" " * 1000, 0.05
    began = monotonic()
    with pytest.raises(RerankError, match=r"did not answer within 0\.3 seconds"):
        Reranker(server.url, timeout=0.3)("q", TEXTS)
    assert monotonic() - began < 25


def test_one_that_is_not_there_is_named_without_its_password(unused_port: int) -> None:
    with pytest.raises(RerankError) as caught:
        Reranker(f"http://user:{SECRET}@127.0.0.1:{unused_port}/rerank?key={SECRET}")("q", TEXTS)
    assert (
        str(caught.value)
        == f"The reranker at http://127.0.0.1:{unused_port}/rerank cannot be reached (connection refused)."
    )
