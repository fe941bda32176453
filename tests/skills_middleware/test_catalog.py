from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.skill import Access, Provenance, Skill, SkillContent, SourceKind
from ai_platform_engineering.skills_middleware.sources.source import (
    LoadedSkills,
    SkillGoneError,
    SkillSource,
    SourceUnavailableError,
)
from ai_platform_engineering.skills_middleware.store.store import SkillKey
from ai_platform_engineering.skills_middleware.view import merge_sources
from tests.skills_middleware.store_contract import new_skill

ANN = Principal("token", "ann")
BOB = Principal("token", "bob", frozenset({"payments"}))


class ListSource(SkillSource):
    """Skills of a list; `failure` is raised instead while it is set."""

    def __init__(self, name: str, kind: SourceKind, *skills: Skill) -> None:
        self.name, self.kind, self.skills = name, kind, skills
        self.failure: Exception | None = None
        self.reads = 0

    async def refresh(self) -> None:
        if isinstance(self.failure, RuntimeError):
            raise self.failure

    async def load(self) -> LoadedSkills:
        if self.failure is not None:
            raise self.failure
        return LoadedSkills(tuple(self.skills))

    async def content(self, skill: Skill) -> SkillContent:
        self.reads += 1
        return SkillContent(f"{self.name}/{skill.name}", "")


def skill(
    name: str, kind: SourceKind = "directory", access: Access | None = None, description: str = "Does it."
) -> Skill:
    return Skill(name, description, Provenance(kind, f"/{kind}"), access or Access(), digest=f"{kind}-{name}")


@asynccontextmanager
async def started(tmp_path: Path, *sources: SkillSource, **variables: str) -> AsyncIterator[SkillCatalog]:
    settings = load_settings({"DATA_DIR": str(tmp_path / "data"), **variables})
    catalog = SkillCatalog(settings, sources or None)
    await catalog.start()
    try:
        yield catalog
    finally:
        await catalog.aclose()


async def test_a_stored_skill_is_seen_by_other_processes_at_their_next_turn(tmp_path: Path) -> None:
    async with started(tmp_path) as ours, started(tmp_path) as theirs:
        assert ours.store is not None
        generation = theirs.generation
        created = await ours.store.create(new_skill("incident-triage", "Ours."), "ann")
        for catalog in (ours, theirs):
            await catalog.reload_changed()
            view = catalog.view(ANONYMOUS)
            assert view.skills["incident-triage"] == created
            assert [each.reason for each in view.overridden["incident-triage"]] == [
                "the source api comes after built-in"
            ]
            assert (await catalog.content(created)).instructions == "# Steps"
        assert theirs.generation == generation + 1
        await theirs.reload_changed()
        assert theirs.generation == generation + 1

        await theirs.store.delete(SkillKey("incident-triage"), created.digest)  # type: ignore[union-attr]
        await ours.reload_changed()
        assert ours.view(ANONYMOUS).skills["incident-triage"].provenance.kind == "built-in"
        with pytest.raises(SkillGoneError):
            await ours.content(created)


async def test_without_skills_there_is_no_store_and_no_skill(tmp_path: Path) -> None:
    async with started(tmp_path, ENABLE_SKILLS="false") as catalog:
        await catalog.reload_changed()
        assert catalog.store is None
        assert not catalog.view(ANONYMOUS).skills
        assert catalog.status().sources == ()


async def test_access_is_decided_before_sources_are_merged(tmp_path: Path) -> None:
    team, personal = Access("team", "payments"), Access("personal", "ann")
    source = ListSource(
        "directory",
        "directory",
        skill("deploy", access=personal, description="Ann deploys."),
        skill("deploy", access=team, description="Payments deploys."),
        skill("deploy", description="Everyone deploys."),
    )
    later = ListSource("git", "git", skill("deploy", "git", access=team, description="Git deploys."))
    async with started(tmp_path, source, later) as catalog:
        assert catalog.view(ANONYMOUS).skills["deploy"].description == "Everyone deploys."
        anns = catalog.view(ANN)
        assert anns.skills["deploy"].description == "Ann deploys."
        assert [each.reason for each in anns.overridden["deploy"]] == [
            "the personal skill of this name overrides the global one"
        ]
        assert catalog.view(BOB).skills["deploy"].description == "Git deploys."
        assert len(catalog.view(BOB).overridden["deploy"]) == 2
        assert not catalog.view(ANONYMOUS).overridden
        assert [each.skill.access for each in catalog.status(BOB).overridden] == [Access(), team]
        for caller, found in ((ANONYMOUS, "Everyone deploys."), (ANN, "Ann deploys."), (BOB, "Git deploys.")):
            assert [each.description for each in catalog.view(caller).search("deploys")] == [found]


async def test_views_are_shared_by_callers_who_see_the_same(tmp_path: Path) -> None:
    source = ListSource("directory", "directory", skill("one"), skill("two", access=Access("team", "payments")))
    async with started(tmp_path, source) as catalog:
        assert catalog.view(ANN) is catalog.view(ANONYMOUS)
        assert catalog.view(BOB) is not catalog.view(ANN)
        view = catalog.view(ANN)
        source.skills = (skill("three"),)
        await catalog.refresh()
        assert list(catalog.view(ANN).skills) == ["three"]
        assert list(view.skills) == ["one"]


async def test_a_failing_source_keeps_its_skills_and_does_not_affect_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = ListSource("directory", "directory", skill("one")), ListSource("git:x", "git", skill("two", "git"))
    async with started(tmp_path, good, bad) as catalog:
        for failure, sentence in (
            (SourceUnavailableError("The disk is gone."), "The disk is gone."),
            (RuntimeError("internal"), "Loading failed with an unexpected error; see the log."),
        ):
            bad.failure, good.skills = failure, (skill(f"new-{type(failure).__name__.lower()}"),)
            await catalog.refresh()
            assert sorted(catalog.view(ANONYMOUS).skills) == [good.skills[0].name, "two"]
            status = catalog.status()
            assert [(each.name, each.count) for each in status.sources] == [("directory", 1), ("git:x", 1)]
            assert [str(problem) for problem in status.sources[1].problems] == [sentence]
            assert status.sources[1].loaded_at < status.sources[0].loaded_at == status.loaded_at  # type: ignore[operator]
        bad.failure = None
        await catalog.refresh()
        assert not catalog.status().sources[1].problems
        assert "The disk is gone." in caplog.text


async def test_a_source_that_recovers_is_loaded_at_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ai_platform_engineering.skills_middleware.catalog._RETRY_SECONDS", 0)
    source = ListSource("directory", "directory", skill("one"))
    source.failure = SourceUnavailableError("Not mounted.")
    async with started(tmp_path, source) as catalog:
        await catalog.reload_changed()
        assert not catalog.view(ANONYMOUS).skills
        source.failure = None
        await catalog.reload_changed()
        assert list(catalog.view(ANONYMOUS).skills) == ["one"]
        assert not catalog.status().sources[0].problems


async def test_contents_come_from_the_source_that_won_and_are_read_once(tmp_path: Path) -> None:
    first = ListSource("directory", "directory", skill("deploy"))
    second = ListSource("git:x", "git", skill("deploy", "git"))
    async with started(tmp_path, first, second) as catalog:
        view = catalog.view(ANONYMOUS)
        for _ in range(3):
            assert (await catalog.content(view.skills["deploy"])).document == "git:x/deploy"
        assert (await catalog.content(view.overridden["deploy"][0].skill)).document == "directory/deploy"
        assert (first.reads, second.reads) == (1, 1)


async def test_a_reload_that_starts_after_a_write_sees_it(tmp_path: Path) -> None:
    async with started(tmp_path) as catalog:
        assert catalog.store is not None

        async def write_and_reload(number: int) -> bool:
            name = f"skill-{number}"
            await catalog.store.create(new_skill(name), None)  # type: ignore[union-attr]
            await catalog.reload_changed()
            return name in catalog.view(ANONYMOUS).skills

        assert all(await asyncio.gather(*map(write_and_reload, range(30))))


async def test_search_ranks_names_before_descriptions_and_completes_the_last_word(tmp_path: Path) -> None:
    source = ListSource(
        "directory",
        "directory",
        skill("deployment-rollback", description="Return a service to its previous version."),
        skill("release-notes", description="Write notes about deployments of a service."),
        skill("on-call-handover", description="Hand over the shift."),
        skill("bereitschaft", description="Übergabe der Rufbereitschaft."),
    )
    async with started(tmp_path, source) as catalog:

        def found(query: str, limit: int | None = None) -> list[str]:
            return [each.name for each in catalog.view(ANONYMOUS).search(query, limit)]

        assert found("deployment") == found("how do I undo a deployment?") == ["deployment-rollback", "release-notes"]
        assert found("deploym", 1) == ["deployment-rollback"]
        assert found("service rel") == ["release-notes", "deployment-rollback"]
        assert found("handovers") == ["on-call-handover"]
        assert found("ubergabe") == ["bereitschaft"]
        for nothing in ("", "   ", "kubernetes", '" OR name : * NEAR(', "-"):
            assert found(nothing) == []


def test_a_mistyped_name_and_a_word_find_a_skill() -> None:
    view = merge_sources([[skill("incident-triage")]], ANONYMOUS)
    assert view.near("incident-triag") == ["incident-triage"]
    assert view.search("triage") == [view.skills["incident-triage"]]
