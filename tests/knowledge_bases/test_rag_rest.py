"""The REST API, over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from pypdf import PdfWriter
from starlette.applications import Starlette
from starlette.routing import Mount

from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.knowledge_bases.rag.rest import lazy_rest
from ai_platform_engineering.settings import Settings
from tests.knowledge_bases.rag_servers import environ_of, rag_server, upload_handbook
from tests.knowledge_bases.websites import Answer, Served, website
from tests.servers import serving

pytestmark = pytest.mark.process

DOCUMENTS = "/rag/v1/datasources/notes/documents"
MARKDOWN = {"Content-Type": "text/markdown"}


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with rag_server(tmp_path) as client:
        yield client


def problem(answer: httpx.Response, status: int) -> str:
    """The sentence of a problem, whose form is checked."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["title"]
    assert body["detail"].endswith(".")
    return str(body["detail"])


async def found(http: httpx.AsyncClient, query: str, **more: Any) -> list[str]:
    answer = await http.post("/rag/v1/search", json={"query": query} | more)
    assert answer.status_code == 200, answer.text
    return [result["document_id"] for result in answer.json()["results"]]


async def ended(http: httpx.AsyncClient, job: str) -> dict[str, Any]:
    """The job, when it has ended."""
    async with asyncio.timeout(90):
        while True:
            state: dict[str, Any] = (await http.get(job)).json()
            if state.get("finished"):
                return state
            await asyncio.sleep(0.02)


async def test_a_document_is_kept_replaced_and_removed(http: httpx.AsyncClient) -> None:
    place = f"{DOCUMENTS}/teams/ops%20guide.md"
    first = await http.put(place, content="# Ops\n\nThe pager is green.", headers=MARKDOWN)
    assert (first.status_code, first.json()) == (201, {"document_id": "notes:teams/ops guide.md", "state": "added"})
    again = await http.put(place, content="# Ops\n\nThe pager is green.", headers=MARKDOWN)
    assert (again.status_code, again.json()["state"]) == (200, "unchanged")
    assert await found(http, "green pager") == ["notes:teams/ops guide.md"]

    changed = await http.put(place, content="# Ops\n\nThe pager is violet.", headers=MARKDOWN)
    assert (changed.status_code, changed.json()["state"]) == (200, "updated")
    assert await found(http, "violet") == ["notes:teams/ops guide.md"]
    assert await found(http, "green") == []
    read = (await http.get("/rag/v1/documents/notes:teams/ops%20guide.md")).json()
    assert (read["title"], read["text"], read["link"]) == (
        "Ops",
        "# Ops\n\nThe pager is violet.\n",
        "teams/ops guide.md",
    )

    assert (await http.delete(place)).status_code == 204
    assert await found(http, "violet") == []
    assert "There is no document 'notes:teams/ops guide.md'" in problem(await http.delete(place), 404)


@pytest.mark.parametrize(
    ("path", "kind", "content"),
    [
        ("a.md", "text/markdown; charset=utf-8", b"# Title\n\nThe gardener waters plants."),
        ("a", "text/html", b"<html><body><h1>Title</h1><p>The gardener waters plants.</p></body></html>"),
        ("a", "text/x-rst", b"Title\n=====\n\nThe gardener waters plants.\n"),
        ("a", "text/plain", b"Title\n\nThe gardener waters plants."),
        ("a.rst", "application/octet-stream", b"Title\n=====\n\nThe gardener waters plants.\n"),
        ("a.html", None, b"<h1>Title</h1><p>The gardener waters plants.</p>"),
    ],
)
async def test_the_kind_of_a_document_comes_from_its_header_or_its_name(
    http: httpx.AsyncClient, path: str, kind: str | None, content: bytes
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    assert (await http.put(f"{DOCUMENTS}/{path}", content=content, headers=headers)).status_code == 201
    assert await found(http, "gardener") == [f"notes:{path}"]
    assert (await http.get(f"/rag/v1/documents/notes:{path}")).json()["title"] == "Title"


async def test_documents_that_cannot_be_kept(http: httpx.AsyncClient, tmp_path: Path) -> None:
    unknown = await http.put(f"{DOCUMENTS}/a.zip", content=b"PK", headers={"Content-Type": "application/zip"})
    assert "'application/zip' is not a kind of document that can be read" in problem(unknown, 415)
    assert "text/markdown" in problem(await http.put(f"{DOCUMENTS}/a", content=b"x"), 415)

    broken = await http.put(f"{DOCUMENTS}/a.pdf", content=b"no PDF", headers={"Content-Type": "application/pdf"})
    assert "a.pdf" in problem(broken, 422)
    (tmp_path / "empty.pdf").touch()
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(tmp_path / "empty.pdf")
    blank = await http.put(f"{DOCUMENTS}/b.pdf", content=(tmp_path / "empty.pdf").read_bytes())
    assert "b.pdf" in problem(blank, 422)

    for name in ("a:b", "-a", "%20", "a%20b", "x" * 101):
        problem(await http.put(f"/rag/v1/datasources/{name}/documents/a.md", content=b"x", headers=MARKDOWN), 422)
    link = await http.put(f"{DOCUMENTS}/a.md", content=b"x", headers=MARKDOWN, params={"link": "javascript:alert(1)"})
    assert "link" in problem(link, 422)
    assert sum(each["documents"] for each in (await http.get("/rag/v1/datasources")).json()["datasources"]) == 0


async def test_a_datasource_that_came_from_elsewhere_takes_no_documents(tmp_path: Path) -> None:
    async with rag_server(tmp_path, RAG_PRODUCT_DOCS="true") as http:
        assert await found(http, "supervisor")
        place = "/rag/v1/datasources/platform-engineer/documents/a.md"
        assert "platform-engineer" in problem(await http.put(place, content=b"x", headers=MARKDOWN), 409)


async def test_bodies_have_limits(tmp_path: Path) -> None:
    async def without_length() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 1024

    async with rag_server(tmp_path, FETCH_URL_MAX_BYTES="4096", MAX_REQUEST_BYTES="2048") as http:
        large = await http.put(f"{DOCUMENTS}/a.md", content=b"x" * 4097, headers=MARKDOWN)
        assert problem(large, 413) == "The body is larger than 4096 bytes; FETCH_URL_MAX_BYTES sets the limit."
        assert "4096" in problem(await http.put(f"{DOCUMENTS}/a.md", content=without_length(), headers=MARKDOWN), 413)
        assert (await http.put(f"{DOCUMENTS}/a.md", content=b"x" * 4096, headers=MARKDOWN)).status_code == 201
        query = json.dumps({"query": "x" * 3000}).encode()
        searched = await http.post("/rag/v1/search", content=query, headers={"Content-Type": "application/json"})
        assert "MAX_REQUEST_BYTES" in problem(searched, 413)


async def test_search_narrows_down(http: httpx.AsyncClient) -> None:
    await upload_handbook(http)
    await http.put(f"{DOCUMENTS}/a.md", content="A minute is short.", headers=MARKDOWN)
    assert len(set(await found(http, "minute", limit=50))) == 4
    assert len(await found(http, "minute", limit=1)) == 1
    assert set(await found(http, "minute", datasource="notes")) == {"notes:a.md"}
    assert set(await found(http, "minute", filters={"path_prefix": "cert"})) == {"handbook:certificates.md"}
    nothing = (await http.post("/rag/v1/search", json={"query": "zebra"})).json()
    assert nothing["results"] == []
    assert "Nothing was found." in nothing["note"]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"query": "x", "datasource": "nope"}, 404, "There is no datasource 'nope'; known are handbook."),
        ({"query": "  "}, 422, "The query is empty"),
        ({"query": ""}, 422, "The query is empty"),
        ({"query": "x" * 10_001}, 422, "longer than 10000 characters"),
        ({}, 422, "query: Field required."),
        ({"query": "x", "limit": 0}, 422, "limit"),
        ({"query": "x", "limit": 51}, 422, "limit"),
        ({"query": "x", "filters": {"owner": "me"}}, 422, "filters.owner"),
        ({"query": "x", "top": 5}, 422, "top"),
        ([], 422, "the body"),
    ],
)
async def test_searches_that_are_refused(http: httpx.AsyncClient, body: Any, status: int, sentence: str) -> None:
    await upload_handbook(http)
    assert sentence in problem(await http.post("/rag/v1/search", json=body), status)


async def test_what_is_not_json_or_not_there(http: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json"}
    problem(await http.post("/rag/v1/search", content=b"{", headers=headers), 422)
    problem(await http.post("/rag/v1/search", content=b"[" * 100_000, headers=headers), 400)
    problem(await http.post("/rag/v1/search", content=b"\xff", headers=headers), 400)
    problem(await http.get("/rag/v1/nothing"), 404)
    problem(await http.get("/rag/v1/search"), 405)
    assert "nearest" not in problem(await http.get("/rag/v1/documents/zzz"), 404)


async def test_datasources_are_listed_and_removed(http: httpx.AsyncClient) -> None:
    await upload_handbook(http)
    (listed,) = (await http.get("/rag/v1/datasources")).json()["datasources"]
    assert (listed["name"], listed["documents"], listed["origin"]) == ("handbook", 3, "uploaded documents")
    assert listed["chunks"] >= 3
    assert (await http.delete("/rag/v1/datasources/handbook")).status_code == 204
    assert (await http.get("/rag/v1/datasources")).json() == {"datasources": []}
    assert problem(await http.delete("/rag/v1/datasources/handbook"), 404).startswith("There is no datasource")


SITE = {
    "/": '<html><body><main><h1>Start</h1><p>Welcome.</p><a href="/guide">Guide</a></main></body></html>',
    "/guide": "<html><body><main><h1>Guide</h1><p>The heron stands in the water.</p></main></body></html>",
}


async def test_a_site_is_ingested_while_the_caller_does_something_else(tmp_path: Path) -> None:
    options = {"FETCH_URL_ALLOW_PRIVATE": "true", "INGEST_PAGES_PER_SECOND": "1000"}
    async with website(SITE) as site, rag_server(tmp_path, **options) as http:
        order = {"url": site.url(), "datasource": "site", "depth": 1}
        answer = await http.post("/rag/v1/ingest", json=order)
        assert answer.status_code == 202, answer.text
        assert answer.headers["location"] == f"/rag/v1/ingest/{answer.json()['job']}"
        job = await ended(http, answer.headers["location"])
        assert (job["state"], job["datasource"], job["documents"]) == ("succeeded", "site", 2)
        assert (job["result"]["added"], job["result"]["failed"], job["result"]["complete"]) == (2, 0, True)
        assert await found(http, "heron") == [f"site:{site.url('/guide')}"]
        read = await http.get(f"/rag/v1/documents/site:{site.url('/guide')}")
        assert "The heron stands in the water." in read.json()["text"]

        del site.pages["/guide"]
        again = await ended(http, (await http.post("/rag/v1/ingest", json=order)).headers["location"])
        assert (again["result"]["unchanged"], again["result"]["removed"]) == (1, 1)
        assert await found(http, "heron") == []


async def test_a_sitemap_is_ingested(tmp_path: Path) -> None:
    sitemap = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>{site}/guide</loc></url></urlset>"
    options = {"FETCH_URL_ALLOW_PRIVATE": "true", "INGEST_PAGES_PER_SECOND": "1000"}
    async with website({**SITE, "/sitemap.xml": sitemap}) as site, rag_server(tmp_path, **options) as http:
        answer = await http.post("/rag/v1/ingest", json={"url": site.url("/sitemap.xml")})
        job = await ended(http, answer.headers["location"])
        assert (job["state"], job["datasource"]) == ("succeeded", "127.0.0.1")
        assert await found(http, "heron") == [f"127.0.0.1:{site.url('/guide')}"]


async def test_one_ingest_of_a_datasource_at_a_time(tmp_path: Path) -> None:
    slow = {"/": Answer(b"<p>", stalls=True)}
    async with website(slow) as site, rag_server(tmp_path, FETCH_URL_ALLOW_PRIVATE="true") as http:
        order = {"url": site.url(), "datasource": "site", "kind": "page"}
        first = (await http.post("/rag/v1/ingest", json=order)).json()
        assert first["job"] in problem(await http.post("/rag/v1/ingest", json=order), 409)
        assert (await http.post("/rag/v1/ingest", json=order | {"datasource": "other"})).status_code == 202
    # The server has stopped although both were under way.


async def test_a_job_is_canceled_and_what_it_kept_stays(tmp_path: Path) -> None:
    listing = "".join(f"<url><loc>{{site}}/{page}</loc></url>" for page in ("guide", "slow"))
    pages: dict[str, Served] = {
        **SITE,
        "/sitemap.xml": f"<urlset>{listing}</urlset>",
        "/slow": Answer(b"<p>", stalls=True),
    }
    options = {"FETCH_URL_ALLOW_PRIVATE": "true", "INGEST_PAGES_PER_SECOND": "1000"}
    async with website(pages) as site, rag_server(tmp_path, **options) as http:
        assert (await http.get("/rag/v1/ingest")).json() == {"jobs": []}
        order = {"url": site.url("/sitemap.xml"), "datasource": "site"}
        job = (await http.post("/rag/v1/ingest", json=order)).headers["location"]
        async with asyncio.timeout(90):
            while (await http.get(job)).json()["documents"] < 1:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

        canceled = await http.delete(job)
        assert (canceled.status_code, canceled.json()["state"]) == (200, "canceled")
        assert (canceled.json()["documents"], canceled.json()["result"], canceled.json()["error"]) == (1, None, None)
        assert (await http.delete(job)).json() == (await http.get(job)).json() == canceled.json()
        assert await found(http, "heron") == [f"site:{site.url('/guide')}"]

        site.pages["/slow"] = "<h1>Slow</h1><p>The stork came late.</p>"
        again = await ended(http, (await http.post("/rag/v1/ingest", json=order)).headers["location"])
        assert (again["result"]["added"], again["result"]["unchanged"]) == (1, 1)
        assert (await http.delete(f"/rag/v1/ingest/{again['job']}")).json() == again
        assert (await http.get("/rag/v1/ingest")).json() == {"jobs": [again, canceled.json()]}
        assert "There is no ingest job 'nope'" in problem(await http.delete("/rag/v1/ingest/nope"), 404)


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ({"url": "file:///etc/passwd"}, "http://"),
        ({"url": "/etc/passwd"}, "/etc/passwd"),
        ({"url": "https://user:secret@example.com/"}, "password"),
        ({"url": "https://example.com/", "datasource": "a:b"}, "datasource"),
        ({"url": "https://example.com/", "depth": -1}, "depth"),
        ({"url": "https://example.com/", "kind": "folder"}, "kind"),
        ({"path": "/etc"}, "url"),
    ],
)
async def test_orders_that_are_refused(http: httpx.AsyncClient, order: dict[str, Any], sentence: str) -> None:
    said = problem(await http.post("/rag/v1/ingest", json=order), 422)
    assert sentence in said
    assert "secret" not in said


async def test_a_page_that_cannot_be_read_fails_the_job(http: httpx.AsyncClient) -> None:
    answer = await http.post("/rag/v1/ingest", json={"url": "http://127.0.0.1:1/"})
    job = await ended(http, answer.headers["location"])
    assert job["state"] == "failed"
    assert "127.0.0.1" in job["error"]
    assert "There is no ingest job 'nope'" in problem(await http.get("/rag/v1/ingest/nope"), 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/rag/v1/datasources"),
        ("GET", "/rag/v1/documents/a:b"),
        ("DELETE", "/rag/v1/datasources/a"),
        ("PUT", f"{DOCUMENTS}/a.md"),
        ("POST", "/rag/v1/search"),
        ("POST", "/rag/v1/ingest"),
    ],
)
async def test_a_store_that_cannot_be_used_is_reported(tmp_path: Path, method: str, path: str) -> None:
    (tmp_path / "knowledge.db").write_bytes(b"these are not the bytes of a database" * 100)
    body = json.dumps({"query": "x"} if path.endswith("search") else {"url": "https://example.com/"}).encode()
    headers = {"Content-Type": "text/markdown" if method == "PUT" else "application/json"}
    async with rag_server(tmp_path) as http:
        answer = await http.request(method, path, content=body, headers=headers)
        assert "knowledge.db" in problem(answer, 503)


async def test_the_api_is_described(http: httpx.AsyncClient) -> None:
    api = (await http.get("/rag/openapi.json")).json()
    routes = {(method.upper(), path) for path, methods in api["paths"].items() for method in methods}
    assert routes == {
        ("POST", "/v1/search"),
        ("GET", "/v1/datasources"),
        ("DELETE", "/v1/datasources/{name}"),
        ("GET", "/v1/documents/{document_id}"),
        ("PUT", "/v1/datasources/{name}/documents/{path}"),
        ("DELETE", "/v1/datasources/{name}/documents/{path}"),
        ("POST", "/v1/ingest"),
        ("GET", "/v1/ingest"),
        ("GET", "/v1/ingest/{job}"),
        ("DELETE", "/v1/ingest/{job}"),
    }
    assert api["servers"] == [{"url": "/rag"}]
    page = await http.get("/rag/docs")
    assert page.headers["content-type"].startswith("text/html")
    text = _text_of(page.text)
    for method, path in routes:
        assert f"{method} /rag{path}" in text
    assert "where people read it" in text.lower()
    assert not re.search(r"""<script|<link|src=|url\(|@import|href=["'](?!/)""", page.text)


class _TextDumper(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def _text_of(page: str) -> str:
    parser = _TextDumper()
    parser.feed(page)
    parser.close()
    return "".join(parser.parts)


def mounted(settings: Settings) -> Starlette:
    return Starlette(routes=[Mount("/knowledge", lazy_rest(KnowledgeBase(settings)))])


async def test_it_can_be_mounted_anywhere(tmp_path: Path) -> None:
    async with serving(mounted, environ_of(tmp_path)) as url, httpx.AsyncClient(base_url=url) as http:
        first, second = await asyncio.gather(http.get("/knowledge/v1/datasources"), http.get("/knowledge/openapi.json"))
        assert first.json() == {"datasources": []}
        assert second.json()["servers"] == [{"url": "/knowledge"}]
        assert "/knowledge/v1/search" in (await http.get("/knowledge/docs")).text
        ordered = await http.post("/knowledge/v1/ingest", json={"url": "http://127.0.0.1:1/"})
        assert ordered.headers["location"].startswith("/knowledge/v1/ingest/")


HEAVY = ("fastapi", "numpy", "onnxruntime", "tokenizers", "bs4", "pypdf", "markdown_it", "markdownify", "psycopg")

LIGHT = ["server", "rest", "app"]


@pytest.mark.parametrize("module", LIGHT)
def test_nothing_large_is_imported_before_it_is_used(module: str) -> None:
    name = f"ai_platform_engineering.knowledge_bases.rag.{module}"
    code = f"import sys, {name}; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"
