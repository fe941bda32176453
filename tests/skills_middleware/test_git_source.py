from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.sources.crawling import (
    CrawledSkill,
    CrawlFailedError,
    CrawlRefusedError,
    allowed_address,
    crawl,
)
from ai_platform_engineering.skills_middleware.sources.git_address import (
    GitAddress,
    GitAddressError,
    parse_git_address,
)
from ai_platform_engineering.skills_middleware.sources.git_commands import Git, GitError
from ai_platform_engineering.skills_middleware.sources.git_source import GitSource
from ai_platform_engineering.skills_middleware.sources.source import SourceUnavailableError
from tests.knowledge_bases.websites import certificate
from tests.skills_middleware.git_server import GitServer, commit, git, git_server
from tests.skills_middleware.test_sources import until, write

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with two skills, in which tests commit."""
    write(tmp_path / "team" / "skills" / "rollback", "First.")
    write(tmp_path / "team" / "skills" / "ops" / "handover")
    commit(tmp_path / "team")
    return tmp_path / "team"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with git_server(tmp_path) as running:
        yield running


def settings(tmp_path: Path, repositories: str, **variables: str) -> Settings:
    return load_settings({"DATA_DIR": str(tmp_path / "data"), "SKILLS_GIT": repositories, **variables})


@asynccontextmanager
async def started(tmp_path: Path, repositories: str, **variables: str) -> AsyncIterator[SkillCatalog]:
    catalog = SkillCatalog(settings(tmp_path, repositories, **variables))
    await catalog.start()
    try:
        yield catalog
    finally:
        await catalog.aclose()


def move(source: Path, target: Path) -> None:
    source.rename(target)


def description(catalog: SkillCatalog, name: str = "rollback") -> str | None:
    skill = catalog.view(ANONYMOUS).skills.get(name)
    return skill.description if skill is not None else None


@pytest.mark.parametrize(
    ("entry", "parsed"),
    [
        ("https://git.example.com/skills.git", GitAddress("https://git.example.com/skills.git")),
        (
            "https://ann:p%40ss@git.example.com:8443/a@b/skills.git@feature/x#group/ops/",
            GitAddress("https://git.example.com:8443/a@b/skills.git", "feature/x", "group/ops", "ann", "p@ss"),
        ),
        ("git@git.example.com:org/skills.git@v1.2", GitAddress("git@git.example.com:org/skills.git", "v1.2")),
        ("ssh://git@git.example.com:22/skills@main", GitAddress("ssh://git@git.example.com:22/skills", "main")),
        (f"/srv/skills@{COMMIT}", GitAddress("/srv/skills", COMMIT)),
        ("file:///srv/skills#ops", GitAddress("file:///srv/skills", folder="ops")),
        ("http://127.0.0.1:8000/skills@main", GitAddress("http://127.0.0.1:8000/skills", "main")),
    ],
)
def test_entries_name_a_repository_a_state_and_a_folder(entry: str, parsed: GitAddress) -> None:
    assert parse_git_address(entry) == parsed
    assert parsed.is_pinned == (parsed.ref == COMMIT)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("--upload-pack=touch x", "not an address"),
        ("-oProxyCommand=x@host:path", "not an address"),
        ("ssh://-oProxyCommand=x/path", "host cannot be read"),
        ("ssh://-l@host/path", "user cannot be read"),
        ("https://host/a b", "not an address"),
        ("skills", "has to begin with"),
        ("ext::sh -c id", "not an address"),
        ("ext::id", "has to begin with"),
        ("git://host/path", "git:// is not supported"),
        ("http://git.example.com/skills", "use https://"),
        ("https:///skills", "no host"),
        ("https://host/@main", "path of the repository is missing"),
        ("https://host/skills@-x", "not the name of a branch"),
        ("https://host/skills@a..b", "not the name of a branch"),
        ("https://host/skills#../x", "inside the repository"),
        ("https://host:x/skills", "port cannot be read"),
        ("https://ann:hunter22@host/skills@-", "not the name of a branch"),
        ("ann:hunter22@host/skills", "has to begin with"),
    ],
)
def test_entries_that_cannot_be_used_are_refused_without_their_credentials(entry: str, reason: str) -> None:
    with pytest.raises(GitAddressError, match=reason) as refused:
        parse_git_address(entry)
    assert "hunter22" not in str(refused.value)


async def test_a_branch_stays_at_its_commit_until_it_is_refreshed(tmp_path: Path, work: Path) -> None:
    first = git(work, "rev-parse", "HEAD")
    async with started(tmp_path, f"{work}@main#skills") as catalog:
        await until(lambda: description(catalog) == "First.")
        assert description(catalog, "handover") is not None
        write(work / "skills" / "rollback", "Second.", instructions="Look back.")
        second = commit(work)
        await catalog.reload_changed()
        assert description(catalog) == "First."
        generation = catalog.generation
        await catalog.refresh()
        assert description(catalog) == "Second."
        assert catalog.generation == generation + 1
        skill = catalog.view(ANONYMOUS).skills["rollback"]
        assert skill.provenance.origin == f"{work}@{second}"
        assert (await catalog.content(skill)).instructions == "Look back."
        status = catalog.status().sources[1]
        assert (status.name, status.commit, status.problems) == (f"git:{work}#skills", second, ())
        assert first != second


async def test_the_last_copy_is_used_without_the_repository(tmp_path: Path, work: Path) -> None:
    async with started(tmp_path, f"{work}@main") as catalog:
        await until(lambda: description(catalog) == "First.")
    move(work, tmp_path / "away")
    async with started(tmp_path, f"{work}@main") as catalog:
        assert description(catalog) == "First."
        assert not catalog.status().sources[1].problems
        await catalog.refresh()
        assert description(catalog) == "First."
        (problem,) = catalog.status().sources[1].problems
        assert "does not appear to be a git repository. Check the address." in str(problem)
        move(tmp_path / "away", work)
        await catalog.refresh()
        assert not catalog.status().sources[1].problems


@pytest.mark.parametrize("stored_format", [None, 2], ids=["format-1", "newer"])
async def test_a_copy_of_another_format_is_fetched_again(tmp_path: Path, work: Path, stored_format: int | None) -> None:
    async with started(tmp_path, f"{work}@main") as catalog:
        await until(lambda: description(catalog) == "First.")
    (current,) = (tmp_path / "data" / "skills" / "git").glob("*/current.json")
    written = json.loads(current.read_text())
    assert written["format"] == 1
    rest = {key: value for key, value in written.items() if key != "format"}
    current.write_text(json.dumps(rest if stored_format is None else {**rest, "format": stored_format}))
    write(work / "skills" / "rollback", "Second.")
    commit(work)
    async with started(tmp_path, f"{work}@main") as catalog:
        expected = "First." if stored_format is None else "Second."
        await until(lambda: description(catalog) == expected)
        assert not catalog.status().sources[1].problems


async def test_a_pinned_commit_is_fetched_once(tmp_path: Path, work: Path) -> None:
    first = git(work, "rev-parse", "HEAD")
    write(work / "skills" / "rollback", "Second.")
    commit(work)
    async with started(tmp_path, f"file://{work}@{first}") as catalog:
        await until(lambda: description(catalog) == "First.")
        move(work, tmp_path / "away")
        await catalog.refresh()
        assert description(catalog) == "First."
        assert not catalog.status().sources[1].problems


async def test_a_refresh_by_another_process_reaches_the_next_turn(tmp_path: Path, work: Path) -> None:
    async with started(tmp_path, f"{work}@main") as ours, started(tmp_path, f"{work}@main") as theirs:
        await until(lambda: description(ours) == description(theirs) == "First.")
        write(work / "skills" / "rollback", "Second.")
        commit(work)
        await theirs.refresh()
        await ours.reload_changed()
        assert description(ours) == "Second."


async def test_a_copy_that_another_process_has_fetched_meanwhile_is_noticed(tmp_path: Path, work: Path) -> None:
    ours, theirs = (GitSource(parse_git_address(f"{work}@main"), tmp_path / "copies") for _ in range(2))
    assert not (await ours.load()).skills
    await theirs.refresh()
    async for _ in ours.changes():
        assert (await ours.load()).skills
        return
    pytest.fail("nothing was noticed")


async def test_entries_that_fail_do_not_affect_others(
    tmp_path: Path, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "empty").mkdir()
    commit(tmp_path / "empty")
    entries = f"https://ann:hunter22@host/skills@-,file://{work}@absent,{work}@main,{tmp_path}/empty@main"
    async with started(tmp_path, entries) as catalog:
        await until(lambda: description(catalog) == "First.")
        await until(lambda: "couldn't find remote ref absent" in str(catalog.status().sources[2].problems))
        _, unusable, absent, *_ = catalog.status().sources
        assert "Correct SKILLS_GIT" in str(unusable.problems[0])
        assert "Check the part after the @" in str(absent.problems[0])
        assert "hunter22" not in caplog.text + repr(catalog.status())


async def test_trees_with_links_or_too_large_files_are_refused(tmp_path: Path, work: Path) -> None:
    (work / "skills" / "rollback" / "passwd").symlink_to("/etc/passwd")
    (write(work / "large") / "data.txt").write_bytes(b"x" * 300_000)
    (write(work / "nested" / "a" / "b" / "too-deep")).joinpath("x").write_text("", encoding="utf-8")
    write(work / ".github" / "hidden")
    write(work / "a" / "handover")
    (work / "linked").symlink_to("skills")
    commit(work)
    async with started(tmp_path, f"{work}@main") as catalog:
        await until(lambda: description(catalog, "handover") is not None)
        skills = [each.name for each in catalog.view(ANONYMOUS).skills.values() if each.provenance.kind == "git"]
        assert skills == ["handover"]
        assert sorted((problem.code, problem.path) for problem in catalog.status().sources[1].problems) == [
            ("duplicate", "skills/ops/handover"),
            ("file_too_large", "large/data.txt"),
            ("symlink", "skills/rollback/passwd"),
        ]


async def test_a_repository_may_be_one_skill(tmp_path: Path, work: Path) -> None:
    root = write(tmp_path / "single")
    commit(root)
    async with started(tmp_path, f"{root}@main,{work}#skills/rollback") as catalog:
        await until(lambda: description(catalog) == "First." and description(catalog, "single") is not None)
        for name in ("single", "rollback"):
            assert (await catalog.content(catalog.view(ANONYMOUS).skills[name])).instructions == "Do it."


async def test_credentials_reach_the_server_and_nothing_else(
    tmp_path: Path, work: Path, server: GitServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.authorization = "Basic " + base64.b64encode(b"ann:hunter22").decode()
    address = server.address.replace("//", "//ann:hunter22@") + "/team/.git@main"
    async with started(tmp_path, address) as catalog:
        await until(lambda: description(catalog) == "First.")
        assert server.seen == {server.authorization}
        server.authorization = "Basic other"
        await catalog.refresh()
        assert "SKILLS_GIT_TOKEN" in str(catalog.status().sources[1].problems)
        shown = repr(catalog.status()) + repr(catalog.view(ANONYMOUS)) + caplog.text
    copies = tmp_path / "data" / "skills" / "git"
    assert [path.stat().st_mode & 0o077 for path in (copies.parent.parent, copies.parent, copies)] == [0, 0, 0]
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    encoded = base64.b64encode(b"ann:hunter22")
    for secret in (b"hunter22", encoded):
        assert secret not in stored
        assert secret.decode() not in shown


async def test_the_token_goes_to_https_addresses_only(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, trusted = certificate(tmp_path, "localhost")
    monkeypatch.setenv("GIT_SSL_CAINFO", str(trusted))
    with git_server(tmp_path, context) as secure, git_server(tmp_path) as plain:
        entries = f"https://localhost:{secure.port}/team/.git@main,{plain.address}/team/.git@main#skills/ops"
        async with started(tmp_path, entries, SKILLS_GIT_TOKEN="glpat-secret-token") as catalog:
            await until(lambda: [each.count for each in catalog.status().sources[1:3]] == [2, 1])
        assert secure.seen == {"Basic " + base64.b64encode(b"x-access-token:glpat-secret-token").decode()}
        assert plain.seen == {None}


async def test_redirects_are_not_followed(tmp_path: Path, work: Path, server: GitServer) -> None:
    with git_server(tmp_path) as other:
        server.redirect = other.address
        async with started(tmp_path, f"{server.address}/team/.git@main") as catalog:
            await until(lambda: "fetch_failed" in str(catalog.status().sources[1].problems))
            assert "The server redirects" in str(catalog.status().sources[1].problems)
        assert other.requests == []


async def test_a_fetch_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ai_platform_engineering.skills_middleware.sources.git_source.FETCH_SECONDS", 0.3)
    accepted, closed = asyncio.Event(), asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        while await reader.read(1000):
            pass
        writer.close()
        closed.set()

    silent = await asyncio.start_server(never_answer, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    source = GitSource(parse_git_address(f"http://127.0.0.1:{port}/x"), tmp_path)
    await source.refresh()
    assert accepted.is_set()
    await closed.wait()
    assert "Git did not finish within 0.3 s." in str((await source.load()).problems)
    silent.close()


async def test_a_repository_that_is_too_large_is_not_kept(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "large.bin").write_bytes(os.urandom(2**20))
    commit(work)
    monkeypatch.setattr("ai_platform_engineering.skills_middleware.sources.git_source.MAX_REPOSITORY_SIZE", 2**19)
    source = GitSource(parse_git_address(f"{work}@main"), tmp_path / "copies")
    await source.refresh()
    assert "more than 0 MB" in str((await source.load()).problems)
    assert list((tmp_path / "copies").glob("*/*")) == []


async def test_without_git_the_reason_is_given(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    source = GitSource(parse_git_address(f"{work}@main"), tmp_path / "copies")
    await source.refresh()
    assert "The program git is not installed." in str((await source.load()).problems)


async def test_hooks_configuration_and_filters_of_the_repository_do_not_run(tmp_path: Path, work: Path) -> None:
    ran = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {ran}\n"
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (work / ".git" / "hooks" / hook).write_text(script, encoding="utf-8")
        (work / ".git" / "hooks" / hook).chmod(0o755)
    (work / ".gitattributes").write_text("* filter=evil\n", encoding="utf-8")
    (work / ".gitmodules").write_text('[submodule "x"]\npath = x\nurl = ext::sh -c "touch ran"\n', encoding="utf-8")
    (tmp_path / ".gitconfig").write_text(
        f'[core]\nhooksPath = {work}/.git/hooks\n[filter "evil"]\nsmudge = touch {ran}\n', encoding="utf-8"
    )
    git(work, "add", "--all")
    ran.unlink(missing_ok=True)
    git(work, "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message=evil")
    ran.unlink(missing_ok=True)
    async with started(tmp_path, f"{work}@main") as catalog:
        await until(lambda: description(catalog) == "First.")
    assert not ran.exists()


async def test_crawling_lists_the_skills_and_stores_nothing(
    tmp_path: Path, work: Path, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    write(work / "skills" / "broken").rename(work / "skills" / "renamed")
    head = commit(work)
    values = settings(tmp_path, "", SKILLS_CRAWL_HOSTS="github.com, 127.0.0.1", SKILLS_GIT_TOKEN="secret-token")
    crawled = await crawl(values, f"{server.address}/team/.git#skills")
    assert crawled.commit == head
    assert crawled.skills == (
        CrawledSkill("skills/ops/handover", "handover", "Does it."),
        CrawledSkill("skills/rollback", "rollback", "First."),
    )
    assert [(problem.code, problem.path) for problem in crawled.problems] == [
        ("name_folder", "skills/renamed/SKILL.md")
    ]
    assert server.seen == {None}
    with pytest.raises(CrawlFailedError, match="Check the address"):
        await crawl(values, f"{server.address}/absent")
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "data").exists()


def test_only_allowed_hosts_are_crawled(tmp_path: Path) -> None:
    default = settings(tmp_path, "")
    assert allowed_address(default, "org/skills@main#a") == GitAddress("https://github.com/org/skills.git", "main", "a")
    assert allowed_address(default, "org/group/skills", "gitlab").address == "https://gitlab.com/org/group/skills.git"
    for refused in (
        "https://git.example.com/skills",
        "https://github.com.evil.example/skills",
        "https://github.com:8443/org/skills",
        "https://github.com@evil.example/org/skills",
        "http://127.0.0.1/skills",
        "ssh://git@github.com/org/skills",
        "git@github.com:org/skills",
        "file:///etc",
        "/etc",
        "https://ann:hunter22@github.com/org/skills",
        "-x/y",
        "",
    ):
        with pytest.raises(CrawlRefusedError) as error:
            allowed_address(default, refused)
        assert "hunter22" not in str(error.value)
    other = settings(tmp_path, "", SKILLS_CRAWL_HOSTS="git.example.com:8443,localhost")
    for allowed in ("https://git.example.com:8443/skills", "http://localhost:3000/skills"):
        assert allowed_address(other, allowed).address == allowed


async def test_a_damaged_copy_is_replaced_by_a_refresh(tmp_path: Path, work: Path) -> None:
    source = GitSource(parse_git_address(f"{work}@main"), tmp_path / "copies")
    await source.refresh()
    head = git(work, "rev-parse", "HEAD")
    (copy,) = (tmp_path / "copies").glob(f"*/{head}.git")
    for file in filter(Path.is_file, (copy / "objects").rglob("*")):
        file.chmod(0o600)
        file.write_bytes(b"")
    with pytest.raises(SourceUnavailableError, match="cannot be read"):
        await source.load()
    await source.refresh()
    assert len((await source.load()).skills) == 2


def test_a_failure_of_git_has_no_credentials() -> None:
    git_program = Git.for_address(parse_git_address("https://ann:hunter22@host/x"))
    error = git_program._failure("remote: x\nfatal: unable to access 'https://ann:hunter22@host/x/': timed out\n")
    assert isinstance(error, GitError)
    assert "hunter22" not in str(error)
