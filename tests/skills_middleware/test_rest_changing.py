"""The skills API: create, replace, delete, and who may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.oauth_issuer import TestIssuer, issuing
from tests.skills_middleware.rest_servers import ANY, KEY, body, document, names, problem, supervisor, tarred, zipped


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with supervisor(tmp_path) as client:
        yield client


async def test_a_skill_is_created_replaced_and_deleted(http: httpx.AsyncClient) -> None:
    created = await http.post("/skills", json=body(files={"notes.md": "Notes.", "run.sh": "echo hello"}))
    assert created.status_code == 201, created.text
    assert [(each["severity"], each["code"]) for each in created.json()["findings"]] == [("info", "script")]
    assert created.headers["location"] == "/skills/hello"
    tag = created.headers["etag"]
    assert created.json()["etag"] == tag
    assert created.json()["source"] == "api"
    assert created.json()["origin"] == "127.0.0.1"
    assert created.json()["added_at"] == created.json()["updated_at"]
    again = await http.post("/skills", json=body())
    assert "exists already" in problem(again, 409)
    assert again.headers["etag"] == tag

    assert "If-Match" in problem(await http.put("/skills/hello", json=body(text="Wave.")), 428)
    outdated = await http.put("/skills/hello", json=body(text="Wave."), headers={"If-Match": '"outdated"'})
    assert "changed meanwhile" in problem(outdated, 412)
    assert outdated.headers["etag"] == tag
    replaced = await http.put("/skills/hello", json=body(text="Wave."), headers={"If-Match": tag})
    assert replaced.status_code == 200
    assert replaced.headers["etag"] != tag
    assert replaced.json()["added_at"] == created.json()["added_at"]
    shown = (await http.get("/skills/hello")).json()
    assert (shown["instructions"], shown["files"]) == ("Wave.", [])

    assert "If-Match" in problem(await http.delete("/skills/hello"), 428)
    problem(await http.delete("/skills/hello", headers={"If-Match": tag}), 412)
    deleted = await http.delete("/skills/hello", headers={"If-Match": replaced.headers["etag"]})
    assert (deleted.status_code, deleted.content) == (204, b"")
    problem(await http.get("/skills/hello"), 404)
    problem(await http.delete("/skills/hello", headers=ANY), 404)


async def test_a_change_is_in_effect_at_once_although_the_store_is_slow(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every check of the store takes too long for a turn.
    monkeypatch.setattr("ai_platform_engineering.skills_middleware.catalog._CHECK_TIMEOUT_SECONDS", 0)
    created = await http.post("/skills", json=body())
    assert created.status_code == 201
    assert (await http.get("/skills/hello")).status_code == 200
    await http.delete("/skills/hello", headers={"If-Match": created.headers["etag"]})
    problem(await http.get("/skills/hello"), 404)


async def test_put_creates_what_is_not_there(http: httpx.AsyncClient) -> None:
    absent = {"If-None-Match": "*"}
    assert (await http.put("/skills/hello", json=body(), headers=absent)).status_code == 201
    assert "exists already" in problem(await http.put("/skills/hello", json=body(), headers=absent), 412)
    problem(await http.put("/skills/other", json=body("other"), headers=ANY), 404)
    assert "the address has 'other'" in problem(await http.put("/skills/other", json=body(), headers=absent), 422)


async def test_of_two_changes_of_one_version_one_is_made(http: httpx.AsyncClient) -> None:
    tag = (await http.post("/skills", json=body())).headers["etag"]
    texts = [f"Change {number}." for number in range(8)]
    answers = await asyncio.gather(
        *(http.put("/skills/hello", json=body(text=text), headers={"If-Match": tag}) for text in texts)
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7
    (made,) = [text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 200]
    assert (await http.get("/skills/hello")).json()["instructions"] == made


@pytest.mark.parametrize("folder", ["", "hello/"])
@pytest.mark.parametrize(
    ("kind", "pack"),
    [
        ("application/zip", zipped),
        ("application/octet-stream", zipped),
        ("application/gzip", tarred),
        ("application/x-tar", tarred),
    ],
)
async def test_an_archive_is_a_skill(http: httpx.AsyncClient, kind: str, pack: type, folder: str) -> None:
    files = {f"{folder}SKILL.md": document(), f"{folder}docs/notes.md": "Notes."}
    created = await http.post("/skills", content=pack(files), headers={"Content-Type": kind})
    assert created.status_code == 201, created.text
    assert (await http.get("/skills/hello?include_content=true")).json()["contents"] == {"docs/notes.md": "Notes."}


async def test_a_skill_of_another_source_is_overridden_and_not_changed(http: httpx.AsyncClient) -> None:
    skill = body("incident-triage", description="Mine.")
    for answer in (
        await http.put("/skills/incident-triage", json=skill, headers=ANY),
        await http.delete("/skills/incident-triage", headers=ANY),
    ):
        assert "comes from the source built-in" in problem(answer, 409)
        assert "POST /skills" in problem(answer, 409)
    assert (await http.post("/skills", json=skill)).status_code == 201
    assert (await http.delete("/skills/incident-triage", headers=ANY)).status_code == 204
    assert (await http.get("/skills/incident-triage")).json()["source"] == "built-in"


async def test_bodies_that_are_refused(http: httpx.AsyncClient) -> None:
    wrong = await http.post("/skills", json={"content": "---\nname: A B\n---\nx"})
    assert {each["code"] for each in wrong.json()["problems"]} >= {"name", "description"}
    assert "name" in problem(wrong, 422)
    for sent in ({}, {"content": document(), "visibility": "secret"}, {"content": document(), "more": 1}, [], "x"):
        problem(await http.post("/skills", json=sent), 422)
    headers = {"Content-Type": "application/json"}
    for content in (b"{", b"\xff", b"[" * 100_000, b'{"content": "\\ud800"}'):
        problem(await http.post("/skills", content=content, headers=headers), 422)
    assert "leave it out" in problem(await http.post("/skills", json=body(files={"SKILL.md": "x"})), 422)
    for kind in ("text/plain", "multipart/form-data"):
        assert "application/zip" in problem(
            await http.post("/skills", content=b"x", headers={"Content-Type": kind}), 415
        )
    problem(await http.post("/skills", content=b"x"), 415)
    for sent in ({"visibility": "team"}, {"visibility": "global", "team": "sre"}):
        assert "team" in problem(await http.post("/skills", json=body(**sent)), 422)
    assert await names(http, "?source=api") == []


async def test_a_large_body_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with supervisor(tmp_path, MAX_REQUEST_BYTES="2048") as http:
        for address in ("/skills", "/skills/validate", "/skills/scan-content"):
            answer = await http.post(address, json={"content": "x" * 3000})
            assert "MAX_REQUEST_BYTES" in problem(answer, 413)
        answer = await http.put("/skills/hello", json={"content": "x" * 3000}, headers=ANY)
        problem(answer, 413)


async def test_checks_that_store_nothing(http: httpx.AsyncClient) -> None:
    good = (await http.post("/skills/validate", json=body(files={"notes.md": "Notes."}))).json()
    assert (good["valid"], good["problems"], good["skill"]["name"]) == (True, [], "hello")
    bad = (await http.post("/skills/validate", json={"content": "---\nname: A B\n---\nx"})).json()
    assert (bad["valid"], bad["skill"]) == (False, None)
    assert {each["code"] for each in bad["problems"]} >= {"name", "description"}
    archive = await http.post("/skills/validate", content=b"PK no archive", headers={"Content-Type": "application/zip"})
    assert archive.json()["valid"] is False
    assert archive.json()["problems"]
    scanned = (await http.post("/skills/scan-content", json={"name": "hello", "content": document()})).json()
    assert scanned == {"name": "hello", "passed": True, "findings": []}
    hidden = body(files={"notes.md": "Safe.\nReverse \u202e this."})
    suspicious = (await http.post("/skills/scan-content", json=hidden)).json()
    assert suspicious["passed"] is False
    assert [(each["code"], each["path"], each["line"]) for each in suspicious["findings"]] == [
        ("bidi_override", "notes.md", 2)
    ]
    assert "notes.md" in problem(await http.post("/skills", json=hidden), 422)
    assert await names(http, "?source=api") == []


async def test_a_store_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "skills.db").write_bytes(b"this is no database" * 100)
    async with supervisor(tmp_path) as http:
        assert "skills.db" in problem(await http.post("/skills", json=body()), 503)
        assert "incident-triage" in await names(http, "?limit=200")
        sources = (await http.get("/internal/supervisor/skills-status")).json()["sources"]
        assert "skills.db" in sources[-1]["problems"][0]["message"]


def bearer(issuer: TestIssuer, subject: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {issuer.token(sub=subject)}"}


async def test_callers_see_and_change_what_their_key_or_token_allows(tmp_path: Path) -> None:
    async with (
        issuing() as issuer,
        supervisor(
            tmp_path, A2A_OAUTH_ISSUER=issuer.url, A2A_AUTH_SHARED_KEY=KEY, SKILLS_ADMINS="root, other-root"
        ) as http,
    ):
        key = {"Authorization": f"Bearer {KEY}"}
        ada, bob, root = (bearer(issuer, subject) for subject in ("ada", "bob", "root"))
        assert (await http.get("/skills")).status_code == 401

        refused = await http.post("/skills", json=body(), headers=ada)
        assert "SKILLS_ADMINS" in problem(refused, 403)
        assert "personal" in problem(refused, 403)
        assert (await http.post("/skills", json=body(description="By the key."), headers=key)).status_code == 201
        assert (await http.post("/skills", json=body("by-root"), headers=root)).json()["added_by"] == "root"
        problem(await http.put("/skills/hello", json=body(), headers=ada | ANY), 403)
        problem(await http.delete("/skills/hello", headers=ada | ANY), 403)
        for caller in (ada, root, key):
            team = await http.post("/skills", json=body("ours", visibility="team", team="sre"), headers=caller)
            assert "'sre'" in problem(team, 403)

        for caller in (ada, bob):
            mine = await http.post("/skills", json=body(visibility="personal", description="Mine."), headers=caller)
            assert mine.status_code == 201
            assert mine.headers["location"] == "/skills/hello?visibility=personal"
        shown = (await http.get("/skills/hello", headers=ada)).json()
        assert (shown["visibility"], shown["added_by"]) == ("personal", "ada")
        assert [hidden["visibility"] for hidden in shown["overrides"]] == ["global"]
        exact = (await http.get("/skills/hello?visibility=global", headers=ada)).json()
        assert (exact["description"], exact["in_effect"]) == ("By the key.", False)
        for caller in (root, key):
            assert (await http.get("/skills/hello", headers=caller)).json()["description"] == "By the key."
            problem(await http.get("/skills/hello?visibility=personal", headers=caller), 404)

        secret = body("ada-only", visibility="personal", files={"notes.md": "Secret."})
        assert (await http.post("/skills", json=secret, headers=ada)).status_code == 201
        for caller in (bob, root, key):
            assert "ada-only" not in await names(http, "?limit=200", headers=caller)
            assert await names(http, "?q=ada-only", headers=caller) == []
            for query in ("", "?visibility=personal"):
                problem(await http.get(f"/skills/ada-only{query}", headers=caller), 404)
                problem(await http.get(f"/skills/ada-only/files/notes.md{query}", headers=caller), 404)
                problem(await http.put(f"/skills/ada-only{query}", json=secret, headers=caller | ANY), 404)
                problem(await http.delete(f"/skills/ada-only{query}", headers=caller | ANY), 404)
        card = (await http.get("/.well-known/agent-card.json")).text
        assert "skill-by-root" in card
        assert "ada-only" not in card

        # The personal skill is in effect, so it is the one that is deleted.
        assert (await http.delete("/skills/hello", headers=ada | ANY)).status_code == 204
        assert (await http.get("/skills/hello", headers=ada)).json()["visibility"] == "global"
        assert (await http.get("/skills/hello", headers=bob)).json()["visibility"] == "personal"


async def test_an_admin_gives_a_personal_skill_to_all(tmp_path: Path) -> None:
    async with (
        issuing() as issuer,
        supervisor(tmp_path, A2A_OAUTH_ISSUER=issuer.url, SKILLS_ADMINS="root") as http,
    ):
        ada, root = bearer(issuer, "ada"), bearer(issuer, "root")
        for caller in (ada, root):
            assert (await http.post("/skills", json=body(visibility="personal"), headers=caller)).status_code == 201
        problem(await http.put("/skills/hello", json=body(visibility="global"), headers=ada | ANY), 403)
        given = await http.put("/skills/hello", json=body(visibility="global"), headers=root | ANY)
        assert (given.status_code, given.json()["visibility"]) == (200, "global")
        assert (await http.get("/skills/hello", headers=root)).json()["overrides"] == []
        assert (await http.get("/skills/hello?visibility=global", headers=ada)).status_code == 200


async def test_a_server_without_a_key_has_no_personal_skills(http: httpx.AsyncClient) -> None:
    assert "access token" in problem(await http.post("/skills", json=body(visibility="personal")), 403)
