"""The skills API: lists, single skills, files, status."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.skills_middleware.rest_servers import ANY, body, document, names, problem, supervisor


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with supervisor(tmp_path) as client:
        yield client


async def test_a_list_is_searched_filtered_and_paged(http: httpx.AsyncClient) -> None:
    for name, description, tags in (
        ("zeta-restart", "Restart the zeta service.", "zeta, restart"),
        ("zeta-backup", "Back up the database of zeta.", "zeta, database"),
        ("omega-rotation", "Rotate the credentials of omega.", ""),
    ):
        assert (await http.post("/skills", json=body(name, description=description, tags=tags))).status_code == 201
    assert await names(http, "?source=api") == ["omega-rotation", "zeta-backup", "zeta-restart"]
    assert "incident-triage" in await names(http, "?source=built-in&limit=200")
    assert (await names(http, "?q=restart zeta"))[0] == "zeta-restart"
    assert await names(http, "?q=credentials omega") == ["omega-rotation"]
    assert await names(http, "?tag=ZETA") == ["zeta-backup", "zeta-restart"]
    assert await names(http, "?visibility=personal") == []

    first = (await http.get("/skills?source=api&limit=2")).json()
    second = (await http.get("/skills?source=api&limit=2&offset=2")).json()
    assert [len(page["skills"]) for page in (first, second)] == [2, 1]
    meta = first["meta"]
    assert {key: meta[key] for key in ("total", "limit", "offset")} == {"total": 3, "limit": 2, "offset": 0}
    assert first["skills"][0]["document"] is None
    (with_text,) = (await http.get("/skills?tag=database&include_content=true")).json()["skills"]
    assert with_text["document"] == document("zeta-backup", "Back up the database of zeta.", tags="zeta, database")
    for query in ("limit=0", "limit=201", "offset=-1", "visibility=secret", "source=web", f"q={'x' * 501}"):
        problem(await http.get(f"/skills?{query}"), 422)


async def test_a_client_that_has_the_current_version_gets_304(http: httpx.AsyncClient) -> None:
    await http.post("/skills", json=body(files={"notes.md": "Notes."}))
    addresses = ("/skills?limit=3", "/skills/hello", "/skills/hello/files/notes.md")
    tags = {address: (await http.get(address)).headers["etag"] for address in addresses}
    for address, tag in tags.items():
        known = await http.get(address, headers={"If-None-Match": f'"other", W/{tag}'})
        assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", tag)
    await http.put("/skills/hello", json=body(files={"notes.md": "New."}), headers=ANY)
    for address, tag in tags.items():
        changed = await http.get(address, headers={"If-None-Match": tag})
        assert changed.status_code == 200
        assert changed.headers["etag"] != tag


async def test_one_skill_with_its_files(http: httpx.AsyncClient) -> None:
    files = {"scripts/run.sh": "#!/bin/sh\necho hello\n", "page.html": "<script>alert(1)</script>"}
    await http.post("/skills", json=body(text="Run `scripts/run.sh`.", files=files))
    shown = (await http.get("/skills/hello")).json()
    assert shown["instructions"] == "Run `scripts/run.sh`."
    assert shown["document"] == document(text="Run `scripts/run.sh`.")
    assert sorted(shown["files"]) == sorted(files)
    assert shown["contents"] is None
    assert shown["size"] == len(shown["document"]) + sum(map(len, files.values()))
    assert (await http.get("/skills/hello?include_content=true")).json()["contents"] == files
    page = await http.get("/skills/hello/files/page.html")
    assert (page.text, page.headers["content-type"]) == (files["page.html"], "text/plain; charset=utf-8")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert (await http.get("/skills/hello/files/SKILL.md")).text == shown["document"]
    for path in ("scripts", "nothing.md", "..%2f..%2fetc%2fpasswd"):
        assert "GET /skills/hello lists its files" in problem(await http.get(f"/skills/hello/files/{path}"), 404)
    assert "did you mean incident-triage" in problem(await http.get("/skills/incident-triag"), 404)
    problem(await http.get("/skills/zzz/files/a.md"), 404)


async def test_an_overridden_skill_is_named_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "incident-triage"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(document("incident-triage", "Ours."))
    async with supervisor(tmp_path / "data", SKILLS_DIR=str(tmp_path / "skills")) as http:
        assert (await http.post("/skills", json=body("incident-triage", description="Mine."))).status_code == 201
        shown = (await http.get("/skills/incident-triage")).json()
        assert (shown["description"], shown["source"], shown["in_effect"]) == ("Mine.", "api", True)
        assert [(hidden["source"], hidden["reason"]) for hidden in shown["overrides"]] == [
            ("built-in", "the source directory comes after built-in"),
            ("directory", "the source api comes after directory"),
        ]
        status = (await http.get("/internal/supervisor/skills-status")).json()
        assert [(hidden["name"], hidden["source"]) for hidden in status["overridden"]] == [
            ("incident-triage", "built-in"),
            ("incident-triage", "directory"),
        ]
        assert (await http.delete("/skills/incident-triage", headers=ANY)).status_code == 204
        assert (await http.get("/skills/incident-triage")).json()["description"] == "Ours."


async def test_the_status_names_sources_problems_and_the_generation_in_use(tmp_path: Path) -> None:
    (tmp_path / "skills" / "broken").mkdir(parents=True)
    (tmp_path / "skills" / "broken" / "SKILL.md").write_text("no front matter")
    async with supervisor(tmp_path / "data", SKILLS_DIR=str(tmp_path / "skills")) as http:
        before = (await http.get("/internal/supervisor/skills-status")).json()
        assert [source["name"] for source in before["sources"]] == ["built-in", "directory", "api"]
        (found,) = before["sources"][1]["problems"]
        assert "broken" in found["path"]
        assert before["mas_registered"] is True
        assert before["graph_generation"] == before["generation"]
        (tmp_path / "skills" / "broken" / "SKILL.md").write_text(document("broken"))
        after = (await http.post("/skills/refresh")).json()
        assert after["sources"][1]["problems"] == []
        assert after["generation"] > before["generation"]
        assert after["graph_generation"] == after["generation"]
        assert after["visible"] == before["visible"] + 1
        assert "broken" in await names(http, "?limit=200")


async def test_the_api_is_described(http: httpx.AsyncClient) -> None:
    api = (await http.get("/openapi.json")).json()
    routes = {(method.upper(), path) for path, methods in api["paths"].items() for method in methods}
    assert routes == {
        ("GET", "/skills"),
        ("POST", "/skills"),
        ("GET", "/skills/{name}"),
        ("PUT", "/skills/{name}"),
        ("DELETE", "/skills/{name}"),
        ("GET", "/skills/{name}/files/{path}"),
        ("POST", "/skills/validate"),
        ("POST", "/skills/scan-content"),
        ("POST", "/skills/refresh"),
        ("POST", "/skill-hubs/crawl"),
        ("GET", "/internal/supervisor/skills-status"),
    }
    page = await http.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "/skills/{name}/files/{path}" in page.text
    assert not re.search(r"""<script|<link|src=|url\(|@import|href=["'](?!/)""", page.text)
    problem(await http.get("/skills/hello/nothing"), 404)
    problem(await http.patch("/skills/hello"), 405)


async def test_skills_that_are_switched_off_are_listed_as_none(tmp_path: Path) -> None:
    async with supervisor(tmp_path, ENABLE_SKILLS="false") as http:
        assert await names(http) == []
        assert "ENABLE_SKILLS=true" in problem(await http.post("/skills", json=body()), 503)
        assert (await http.get("/internal/supervisor/skills-status")).json()["enabled"] is False
