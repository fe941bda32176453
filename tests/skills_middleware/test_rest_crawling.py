"""POST /skill-hubs/crawl, against a Git server on this machine."""

from __future__ import annotations

from pathlib import Path

from tests.skills_middleware.git_server import commit, git_server
from tests.skills_middleware.rest_servers import document, names, problem, supervisor

CRAWL = "/skill-hubs/crawl"


async def test_a_repository_is_previewed_and_nothing_is_stored(tmp_path: Path) -> None:
    work = tmp_path / "repositories" / "team"
    for place, text in (("skills/hello", document()), ("other/wave", document("wave")), ("skills/bad", "no skill")):
        (work / place).mkdir(parents=True)
        (work / place / "SKILL.md").write_text(text)
    head = commit(work)
    with git_server(tmp_path / "repositories") as git:
        async with supervisor(tmp_path / "data", SKILLS_CRAWL_HOSTS="127.0.0.1") as http:
            location = f"{git.address}/team/.git"
            found = (await http.post(CRAWL, json={"type": "git", "location": location})).json()
            assert found["commit"] == head
            assert found["paths"] == ["other/wave", "skills/hello"]
            assert found["skills_preview"][1] == {
                "path": "skills/hello",
                "name": "hello",
                "description": "Say hello.",
            }
            assert ["bad" in each["path"] for each in found["problems"]] == [True]
            some = {"location": location, "ref": "main", "folder": "other"}
            assert (await http.post(CRAWL, json=some)).json()["paths"] == ["other/wave"]
            assert "hello" not in await names(http, "?limit=200")

            missing = await http.post(CRAWL, json={"location": f"{git.address}/absent"})
            assert "cannot be read" in problem(missing, 502)
            for kind, refused in (
                ("git", "https://git.example.com/skills"),
                ("github", "owner/name"),
                ("gitlab", "owner/name"),
                ("git", "file:///etc"),
                ("git", f"http://ann:hunter22@127.0.0.1:{git.port}/team/.git"),
            ):
                answer = await http.post(CRAWL, json={"type": kind, "location": refused})
                assert "hunter22" not in problem(answer, 403)
            for malformed in ({"location": "--upload-pack=x"}, {"location": location, "ref": "a#b"}, {}):
                problem(await http.post(CRAWL, json=malformed), 422)
