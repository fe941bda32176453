"""The routes of the web page: what the supervisor serves of a built page, and what it says without one."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a import main
from ai_platform_engineering.ui.page import Page
from tests.servers import serving

INDEX = "<!doctype html><title>Page</title>"
SCRIPT = "console.log('ü')"
BROTLI = b"not brotli, but the bytes that were built"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    assets = tmp_path / "built" / "assets"
    assets.mkdir(parents=True)
    (assets / "main-AB12.js").write_text(SCRIPT, encoding="utf-8")
    (assets / "main-AB12.js.br").write_bytes(BROTLI)
    (assets / "main-AB12.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    (assets / "page-CD34.css").write_text("a {}", encoding="utf-8")
    (assets / "main-AB12.js.LEGAL.txt").write_text("licenses", encoding="utf-8")
    (assets / "diagram").mkdir()
    (assets / "diagram" / "frame-EF56.js").write_text(SCRIPT, encoding="utf-8")
    (assets / "picture.unknown").write_bytes(b"?")
    for name in ("index.html", "diagram.html"):
        (assets.parent / name).write_text(INDEX, encoding="utf-8")
    return assets.parent


@asynccontextmanager
async def browsing(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        yield http


@pytest.fixture
async def http(built: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with browsing(Starlette(routes=[*Page(built).routes()])) as client:
        yield client


def directives(response: httpx.Response) -> dict[str, str]:
    policy = response.headers["content-security-policy"].split("; ")
    return {name: values for name, _, values in (directive.partition(" ") for directive in policy)}


async def test_the_page_runs_its_own_scripts_only(http: httpx.AsyncClient) -> None:
    for path in ("/", "/index.html"):
        response = await http.get(path)
        assert (response.status_code, response.text) == (200, INDEX)
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        policy = directives(response)
        assert policy["default-src"] == "'none'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert policy["frame-ancestors"] == "'none'"
        assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"


async def test_the_frame_of_diagrams_has_an_origin_of_its_own(http: httpx.AsyncClient) -> None:
    policy = directives(await http.get("/diagram.html"))
    assert policy["sandbox"] == "allow-scripts"
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'self'"


async def test_only_the_scripts_of_the_frame_are_for_all_origins(http: httpx.AsyncClient) -> None:
    paths = ("/", "/diagram.html", "/assets/main-AB12.js", "/assets/diagram/frame-EF56.js")
    allowed = [path for path in paths if "access-control-allow-origin" in (await http.get(path)).headers]
    assert allowed == ["/assets/diagram/frame-EF56.js"]


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/assets/main-AB12.js", "text/javascript; charset=utf-8"),
        ("/assets/page-CD34.css", "text/css; charset=utf-8"),
        ("/assets/main-AB12.js.LEGAL.txt", "text/plain; charset=utf-8"),
        ("/assets/picture.unknown", "application/octet-stream"),
    ],
)
async def test_files_have_fixed_types(http: httpx.AsyncClient, path: str, media_type: str) -> None:
    response = await http.get(path)
    assert (response.status_code, response.headers["content-type"]) == (200, media_type)
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_hashed_files_are_cached_and_pages_are_not(http: httpx.AsyncClient) -> None:
    cached = {path: (await http.get(path)).headers["cache-control"] for path in ("/", "/assets/main-AB12.js")}
    assert cached == {"/": "no-cache", "/assets/main-AB12.js": "public, max-age=31536000, immutable"}


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("BR;q=1.0", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("br; q=0.000, gzip", "gzip"),
        ("br;q=0.01", "br"),
        ("", None),
        ("identity", None),
        ("deflate", None),
    ],
)
async def test_the_smallest_accepted_encoding_is_sent(
    http: httpx.AsyncClient, accepted: str, encoding: str | None
) -> None:
    async with http.stream("GET", "/assets/main-AB12.js", headers={"Accept-Encoding": accepted}) as response:
        raw = b"".join([chunk async for chunk in response.aiter_raw()])
    assert response.headers.get("content-encoding") == encoding
    assert response.headers["vary"] == "Accept-Encoding"
    assert {"br": BROTLI, "gzip": SCRIPT.encode(), None: SCRIPT.encode()}[encoding] == (
        gzip.decompress(raw) if encoding == "gzip" else raw
    )


async def test_a_file_without_encodings_is_sent_as_it_is(http: httpx.AsyncClient) -> None:
    response = await http.get("/assets/page-CD34.css", headers={"Accept-Encoding": "br, gzip"})
    assert ("content-encoding" in response.headers, response.text) == (False, "a {}")


async def test_an_unchanged_file_is_not_sent_again(http: httpx.AsyncClient, built: Path) -> None:
    etag = (await http.get("/")).headers["etag"]
    for known in (etag, f'"other", {etag}', etag.removeprefix("W/"), "*"):
        response = await http.get("/", headers={"If-None-Match": known})
        assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag)
        assert "content-security-policy" in response.headers
    for other in ('"other"', etag[:-2] + '"', ""):
        assert (await http.get("/", headers={"If-None-Match": other})).status_code == 200
    (built / "index.html").write_text("new", encoding="utf-8")
    async with browsing(Starlette(routes=[*Page(built).routes()])) as restarted:
        assert (await restarted.get("/", headers={"If-None-Match": etag})).text == "new"


async def test_head_and_other_methods(built: Path) -> None:
    async with serving(lambda _: Starlette(routes=[*Page(built).routes()]), {}) as url, httpx.AsyncClient() as http:
        head = await http.head(url)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(INDEX))
        assert (await http.delete(f"{url}/index.html")).status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/assets/main-AB12.js.br",
        "/assets/main-AB12.js.gz",
        "/assets/",
        "/assets/../../secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/secret.txt",
    ],
)
async def test_only_the_files_of_the_page_are_served(http: httpx.AsyncClient, built: Path, path: str) -> None:
    (built.parent / "secret.txt").write_text("secret", encoding="utf-8")
    assert (await http.get(path)).status_code == 404


async def test_the_page_can_be_mounted(built: Path) -> None:
    async with browsing(Starlette(routes=[Mount("/platform", routes=[*Page(built).routes()])])) as http:
        assert (await http.get("/platform/")).text == INDEX
        assert (await http.get("/platform/assets/main-AB12.js")).text == SCRIPT


async def test_without_a_page_the_supervisor_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "Page", lambda: Page(tmp_path / "nothing"))
    environ = {"DATA_DIR": str(tmp_path), "A2A_AUTH_SHARED_KEY": "correct-horse-battery", "ENABLE_RAG": "false"}
    async with serving(main.create_app, environ) as url, httpx.AsyncClient() as http:
        response = await http.get(url)
        assert response.status_code == 404
        assert "make setup" in response.text
        assert "platform-engineer chat" in response.text
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        assert directives(response)["default-src"] == "'none'"
        assert (await http.get(f"{url}/readyz")).status_code == 200
        assert (await http.get(f"{url}/assets/main.js")).status_code == 401
