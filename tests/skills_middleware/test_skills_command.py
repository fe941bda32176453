"""`platform-engineer skills`, on this machine and at a running supervisor: the same commands with the same outcome."""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from ai_platform_engineering.cli import main
from tests.servers import CommandLine

DOCUMENT = """---
name: restart-service
description: Restart a service safely, and leave a record of it.
---

Restart $ARGUMENTS. The checklist is in reference/checklist.md.
"""
CHECKLIST = "- Is there an incident?\n"
OVERRIDE = DOCUMENT.replace("restart-service", "incident-triage")
KEY = "a-key-of-at-least-16-characters"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


def folder_of(parent: Path, document: str = DOCUMENT, name: str = "restart-service") -> Path:
    folder = parent / name
    (folder / "reference").mkdir(parents=True)
    (folder / "SKILL.md").write_text(document)
    (folder / "reference" / "checklist.md").write_text(CHECKLIST)
    return folder


def zip_of(folder: Path) -> Path:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder.parent))
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def supervisor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandLine]:
    environ = {"DATA_DIR": str(tmp_path_factory.mktemp("data")), "A2A_AUTH_SHARED_KEY": KEY}
    async with CommandLine(["serve", "--port", "0"], environ) as process:
        yield process


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command with a data directory of its own, and without a `.env` of a developer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))

    def command(*arguments: object, **environ: str) -> Ended:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        code = main(["skills", *map(str, arguments)])
        return Ended(code, *capsys.readouterr())

    return command


@pytest.fixture(params=["here", "there"])
def skills(request: pytest.FixtureRequest, run: Run, supervisor: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The commands on this machine, and at a supervisor that demands its key."""
    if request.param == "here":
        return run
    monkeypatch.setenv("A2A_AUTH_SHARED_KEY", KEY)
    return lambda *arguments: run(*arguments, "--url", supervisor.url)


def listed(ended: Ended) -> dict[str, dict[str, object]]:
    assert ended.code == 0, ended.err
    return {row["name"]: row for row in map(json.loads, ended.out.splitlines())}


def test_a_skill_is_added_shown_replaced_and_removed(skills: Run, tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    added = skills("add", folder)
    assert (added.code, added.err) == (0, "")
    assert added.out.startswith("The skill restart-service was added ")
    again = skills("add", folder)
    assert again.code == 1
    assert again.err.startswith("platform-engineer: The skill restart-service exists ")
    assert "--replace replaces it" in again.err

    shown = skills("show", "restart-service")
    assert "Restart a service safely, and leave a record of it." in shown.out
    assert "Source      api" in shown.out
    assert "Files       reference/checklist.md" in shown.out
    assert shown.out.endswith("Restart $ARGUMENTS. The checklist is in reference/checklist.md.\n")
    assert skills("show", "restart-service", "--file", "reference/checklist.md").out == CHECKLIST
    missing = skills("show", "restart-service", "--file", "x")
    assert missing.code == 1
    assert "It has SKILL.md, reference/checklist.md." in missing.err

    (folder / "SKILL.md").write_text(DOCUMENT.replace("safely", "at once"))
    replaced = skills("add", zip_of(folder), "--replace")
    assert replaced.out.startswith("The skill restart-service was replaced ")
    row = listed(skills("list", "--json"))["restart-service"]
    assert row["description"] == "Restart a service at once, and leave a record of it."
    assert (row["source"], row["visibility"], row["files"]) == ("api", "global", ["reference/checklist.md"])

    removed = skills("remove", "restart-service")
    assert (removed.code, removed.err) == (0, "")
    assert removed.out.startswith("The skill restart-service was removed ")
    gone = skills("remove", "restart-service")
    assert gone.code == 1
    assert "There is no skill 'restart-service'." in gone.err
    assert "restart-service" not in skills("list").out


def test_a_skill_of_the_product_is_overridden_and_not_removed(skills: Run, tmp_path: Path) -> None:
    refused = skills("remove", "incident-triage")
    assert refused.code == 1
    assert "incident-triage comes from the source built-in (" in refused.err
    assert "`platform-engineer skills add` overrides it" in refused.err

    assert skills("add", folder_of(tmp_path, OVERRIDE, "incident-triage")).code == 0
    rows = [line.split(maxsplit=3) for line in skills("list", "--all").out.splitlines()]
    assert rows[0] == ["NAME", "SOURCE", "VISIBILITY", "DESCRIPTION"]
    sources = {row[1]: row[3] for row in rows if row[0] == "incident-triage"}
    assert sources["api"].startswith("Restart a service safely")
    assert sources["built-in"].startswith("overridden: ")
    assert "incident-triage" in skills("list", "--all", "--json").out
    assert "overridden" not in skills("list").out

    removed = skills("remove", "incident-triage")
    assert "The global skill incident-triage of the source built-in is in effect now." in removed.err


def test_skills_are_searched_and_near_names_are_offered(skills: Run) -> None:
    found = skills("list", "--search", "incident outage")
    assert found.out.splitlines()[1].startswith("incident-triage")
    assert "that match 'incident outage'" in found.err
    assert skills("list", "--search", "xyzzy").out == ""
    near = skills("show", "incident-triag")
    assert (near.code, near.out) == (1, "")
    assert near.err.startswith("platform-engineer: There is no skill 'incident-triag'. Did you mean incident-triage")


def test_it_says_whose_skills_these_are(run: Run, supervisor: CommandLine, tmp_path: Path) -> None:
    assert f"on this machine (DATA_DIR {tmp_path / 'data'})" in run("list").err
    there = run("list", "--url", supervisor.url, A2A_AUTH_SHARED_KEY=KEY)
    assert f"at {supervisor.url}" in there.err


def test_a_running_supervisor_uses_what_is_added_to_its_data(run: Run, supervisor: CommandLine, tmp_path: Path) -> None:
    data = supervisor.environ["DATA_DIR"]
    assert run("add", folder_of(tmp_path), DATA_DIR=data, A2A_AUTH_SHARED_KEY=KEY).code == 0
    row = listed(run("list", "--json", "--url", supervisor.url))["restart-service"]
    assert (row["added_by"], row["origin"]) == ("key", "command line")
    assert run("remove", "restart-service").code == 0
    assert "restart-service" not in listed(run("list", "--json", "--url", supervisor.url))


def test_sources_are_loaded_again(skills: Run) -> None:
    refreshed = skills("refresh")
    assert (refreshed.code, refreshed.err) == (0, "")
    assert "built-in " in refreshed.out
    assert json.loads(skills("refresh", "--json").out)["sources"][0]["name"] == "built-in"


def test_every_problem_of_a_skill_is_listed(run: Run, tmp_path: Path) -> None:
    good = folder_of(tmp_path, DOCUMENT.replace("---\n\n", "allowed-tools: Bash\n---\n\n"))
    bad = folder_of(tmp_path / "other", "---\nname: Not a name\n---\n", "bad")
    (bad / "tool.exe").write_bytes(b"MZ\x90\x00")
    checked = run("validate", good, zip_of(good), good / "SKILL.md", bad, tmp_path / "none")
    assert (checked.code, checked.err) == (1, "")
    assert checked.out.count("restart-service can be used.") == 3
    assert "  warning: SKILL.md: allowed-tools" in checked.out
    about = checked.out[checked.out.index(f"{bad}: not usable") :]
    assert all(part in about for part in ("name", "description", "tool.exe"))
    assert f"{tmp_path / 'none'}: not usable" in about

    first, last = map(json.loads, run("validate", "--json", good, bad).out.splitlines())
    assert (first["valid"], first["name"], first["warnings"][0]["code"]) == (True, "restart-service", "allowed_tools")
    assert last["valid"] is False
    assert {"name", "description"} <= {problem["code"] for problem in last["problems"]}
    refused = run("add", bad)
    assert refused.code == 1
    assert f"{bad} cannot be used as a skill:\n" in refused.err
    assert run("validate", good).code == 0


def test_what_cannot_be_done_says_why(run: Run, supervisor: CommandLine, tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    nowhere = run("list", "--url", "http://127.0.0.1:9")
    assert (nowhere.code, nowhere.out) == (1, "")
    assert "There is no supervisor at http://127.0.0.1:9 (connection refused)" in nowhere.err
    no_key = run("list", "--url", supervisor.url)
    assert no_key.code == 2
    assert "set A2A_AUTH_SHARED_KEY" in no_key.err
    assert run("add", tmp_path / "none").code == 2
    assert "--team NAME" in run("add", folder, "--visibility", "team").err
    assert run("remove", "x", "--visibility", "personal", "--team", "a").code == 2
    team = run("add", folder, "--team", "payments")
    assert team.code == 1
    assert "payments" in team.err
    off = run("add", folder, ENABLE_SKILLS="false")
    assert off.code == 1
    assert "ENABLE_SKILLS=true" in off.err
