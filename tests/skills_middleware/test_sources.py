from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.skill import Access
from ai_platform_engineering.skills_middleware.sources.directory import DirectorySource
from ai_platform_engineering.skills_middleware.sources.folder import SkillFile
from ai_platform_engineering.skills_middleware.sources.source import (
    LoadedSkills,
    SkillGoneError,
    SourceUnavailableError,
)


def write(folder: Path, description: str = "Does it.", instructions: str = "Do it.", **metadata: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["---", f"name: {folder.name}", f"description: {description}"]
    if metadata:
        lines += ["metadata:", *(f"  {key}: {value}" for key, value in metadata.items())]
    (folder / "SKILL.md").write_text("\n".join([*lines, "---", instructions]), encoding="utf-8")
    return folder


def loaded(directory: Path) -> LoadedSkills:
    return asyncio.run(DirectorySource(directory).load())


def names(result: LoadedSkills) -> list[str]:
    return sorted(skill.name for skill in result.skills)


def test_skills_are_found_in_groups_with_their_files_and_access(tmp_path: Path) -> None:
    write(tmp_path / "one")
    deep = write(tmp_path / "group" / "sub" / "two", visibility="team", team="payments")
    (deep / "notes").mkdir()
    (deep / "notes" / "a.md").write_text("A", encoding="utf-8")
    (deep / ".DS_Store").write_bytes(b"\xff")
    write(tmp_path / "group" / "sub" / "more" / "too-deep")
    write(tmp_path / ".git" / "hidden")
    write(tmp_path / "one" / "nested")
    source = DirectorySource(tmp_path)
    result = asyncio.run(source.load())
    assert names(result) == ["two"]
    (two,) = result.skills
    assert (two.files, two.access, two.provenance.origin) == (
        ("notes/a.md",),
        Access("team", "payments"),
        "group/sub/two",
    )
    assert asyncio.run(source.content(two)).files == {"notes/a.md": "A"}
    # A skill inside another one belongs to it, where the checks refuse it.
    assert [(problem.code, problem.path) for problem in result.problems] == [
        ("several_documents", str(tmp_path / "one/nested/SKILL.md"))
    ]


def test_two_folders_of_the_same_name_are_a_problem_that_names_both(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a" / "same", "First."), write(tmp_path / "b" / "same", "Second.")
    write(tmp_path / "c" / "same", "Ann's.", visibility="personal", owner="ann")
    result = loaded(tmp_path)
    assert [skill.description for skill in result.skills] == ["First.", "Ann's."]
    (problem,) = result.problems
    assert str(first) in str(problem)
    assert str(second) in str(problem)


def test_links_are_followed_inside_the_directory_only(tmp_path: Path) -> None:
    directory, outside = tmp_path / "skills", write(tmp_path / "outside")
    write(directory / "real")
    (directory / "real" / "secret.md").symlink_to(outside / "SKILL.md")
    (directory / "outside").symlink_to(outside)
    (directory / "loop").symlink_to(directory)
    (directory / "broken").symlink_to("nowhere")
    result = loaded(directory)
    assert result.skills == ()
    assert {(problem.code, problem.path.removeprefix(str(directory))) for problem in result.problems} >= {
        ("symlink", "/real/secret.md")
    }


def test_a_mounted_config_map_can_be_read_and_swapped(tmp_path: Path) -> None:
    mount = tmp_path / "skills" / "rollback"

    def version(name: str, description: str) -> None:
        write(mount / f"..{name}" / "rollback", description)
        (mount / f"..{name}" / "SKILL.md").write_text(
            (mount / f"..{name}" / "rollback" / "SKILL.md").read_text("utf-8"), encoding="utf-8"
        )
        (mount / "..data_tmp").symlink_to(f"..{name}")
        (mount / "..data_tmp").rename(mount / "..data")

    version("first", "First.")
    (mount / "SKILL.md").symlink_to("..data/SKILL.md")
    (mount.parent / "linked").symlink_to("rollback/..data/rollback")
    source = DirectorySource(mount.parent)
    result = asyncio.run(source.load())
    assert [skill.description for skill in result.skills] == ["First."]
    version("second", "Second.")
    with pytest.raises(SkillGoneError):
        asyncio.run(source.content(result.skills[0]))
    assert [skill.description for skill in asyncio.run(source.load()).skills] == ["Second."]


def test_what_cannot_be_used_is_a_problem_and_the_rest_is_loaded(tmp_path: Path) -> None:
    write(tmp_path / "good")
    (tmp_path / "good" / "README.md").write_text("Read me.", encoding="utf-8")
    write(tmp_path / "wrong-name").rename(tmp_path / "renamed")
    os.mkfifo(write(tmp_path / "pipe") / "pipe")
    (write(tmp_path / "large") / "data.txt").write_bytes(b"x" * 5_000_000)
    for number in range(200):
        (write(tmp_path / "many") / f"{number}.txt").write_text("", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = loaded(tmp_path)
    assert names(result) == ["good"]
    assert [(problem.code, Path(problem.path).relative_to(tmp_path).parts[0]) for problem in result.problems] == [
        ("file_too_large", "large"),
        ("too_many_files", "many"),
        ("not_a_file", "pipe"),
        ("name_folder", "renamed"),
    ]


def test_only_changed_folders_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "old")
    write(tmp_path / "new")
    monkeypatch.setattr("ai_platform_engineering.skills_middleware.sources.directory._RACE_SECONDS", -60)
    source = DirectorySource(tmp_path)
    before = {skill.name: skill for skill in asyncio.run(source.load()).skills}
    write(tmp_path / "new", "Changed.")
    after = {skill.name: skill for skill in asyncio.run(source.load()).skills}
    assert after["old"] is before["old"]
    assert after["new"].description == "Changed."


def test_a_file_that_changes_within_one_time_stamp_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr(SkillFile, "stamp", property(lambda file: (file.path, 1, 1, now)))
    source = DirectorySource(write(tmp_path / "skill", "Old.").parent)
    asyncio.run(source.load())
    write(tmp_path / "skill", "New.")
    assert [skill.description for skill in asyncio.run(source.load()).skills] == ["New."]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_one_folder_that_cannot_be_read_is_a_problem_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "good")
    write(tmp_path / "group" / "closed").chmod(0)
    result = loaded(tmp_path)
    assert names(result) == ["good"]
    assert [(each.code, each.path) for each in result.problems] == [("unreadable", str(tmp_path / "group/closed"))]


def test_a_directory_that_cannot_be_read_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"No such file or directory.*Check the directory"):
        loaded(tmp_path / "absent")


@asynccontextmanager
async def watching(tmp_path: Path) -> AsyncIterator[SkillCatalog]:
    settings = load_settings({"DATA_DIR": str(tmp_path / "data"), "SKILLS_DIR": str(tmp_path / "skills")})
    catalog = SkillCatalog(settings)
    await catalog.start()
    try:
        yield catalog
    finally:
        await catalog.aclose()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not condition():  # noqa: ASYNC110 - a thread changes what it looks at
            await asyncio.sleep(0.02)


@pytest.mark.long
async def test_changes_of_the_directory_are_seen_while_the_server_runs(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    folder = write(directory / "rollback", "First.")

    def description(name: str = "rollback") -> str | None:
        skill = catalog.view(ANONYMOUS).skills.get(name)
        return skill.description if skill is not None else None

    async with watching(tmp_path) as catalog:
        assert description() == "First."
        write(directory / "group" / "another")
        await until(lambda: description("another") is not None)
        write(folder, "Second.")
        await until(lambda: description() == "Second.")
        # Half a file makes the skill unusable until the rest is written.
        (folder / "SKILL.md").write_text("---\nname: roll", encoding="utf-8")
        await until(lambda: description() is None)
        assert [problem.path for problem in catalog.status().sources[1].problems] == [f"{folder}/SKILL.md"]
        write(folder, "Third.")
        await until(lambda: description() == "Third.")
        assert not catalog.status().sources[1].problems

        directory.rename(tmp_path / "away")
        await until(lambda: bool(catalog.status().sources[1].problems))
        assert description() == "Third."
        write(directory / "rollback", "Fourth.")
        await until(lambda: description() == "Fourth.")
        write(directory / "rollback", "Fifth.")
        await until(lambda: description() == "Fifth.")
        assert description("another") is None


def test_nothing_is_watched_unless_a_directory_is_configured(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "import asyncio, sys\n"
        "from ai_platform_engineering.settings import load_settings\n"
        "from ai_platform_engineering.skills_middleware.catalog import SkillCatalog\n"
        "async def main():\n"
        "    catalog = SkillCatalog(load_settings({}))\n"
        "    await catalog.start()\n"
        "    await asyncio.sleep(0)\n"
        "    await catalog.aclose()\n"
        "asyncio.run(main())\n"
        "print({'watchfiles', 'psycopg', 'fastapi'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"DATA_DIR": str(tmp_path)}
    )
    assert done.stdout == "set()\n"
