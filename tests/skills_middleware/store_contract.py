"""What every skill store has to do. A test class derives from `StoreContract` and says how a store is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ai_platform_engineering.skills_middleware.skill import (
    GLOBAL,
    Access,
    Provenance,
    Skill,
    SkillContent,
    content_digest,
)
from ai_platform_engineering.skills_middleware.store.store import (
    AlreadyExistsError,
    ChangedMeanwhileError,
    NewSkill,
    NotFoundError,
    SkillKey,
    SkillStore,
)

OpenStore = Callable[[], SkillStore]


def new_skill(
    name: str = "rollback",
    description: str = "Roll back a deployment.",
    access: Access = GLOBAL,
    instructions: str = "# Steps",
    files: dict[str, str] | None = None,
) -> NewSkill:
    document = f"---\nname: {name}\ndescription: {description}\n---\n\n{instructions}"
    files = files or {}
    skill = Skill(
        name,
        description,
        Provenance("api", "127.0.0.1"),
        access=access,
        license="MIT",
        metadata={"tags": "deploy"},
        files=tuple(sorted(files)),
        size=len(document.encode()),
        digest=content_digest(document, files, access),
    )
    return NewSkill(skill, SkillContent(document, instructions, files))


class StoreContract:
    async def test_a_skill_is_kept_whole(self, open_store: OpenStore) -> None:
        new = new_skill(instructions="Grüße \x00 \U0001f527", files={"notes/a.md": "één", "b.txt": ""})
        before = datetime.now(UTC)
        created = await open_store().create(new, "ann")
        other = open_store()
        assert await other.load() == (created,)
        assert await other.get(new.key) == created
        assert await other.content(new.key) == new.content
        assert replace(created, provenance=new.skill.provenance) == new.skill
        provenance = created.provenance
        assert (provenance.kind, provenance.origin, provenance.added_by) == ("api", "127.0.0.1", "ann")
        assert provenance.added_at is not None
        assert before <= provenance.added_at <= datetime.now(UTC) + timedelta(seconds=1)

    async def test_replacing_keeps_the_author_and_needs_the_digest_that_is_stored(self, open_store: OpenStore) -> None:
        store = open_store()
        created = await store.create(new_skill(), "ann")
        edited = new_skill(description="Undo a deployment.")
        replaced = await store.replace(edited.key, edited, created.digest, "bob")
        assert (replaced.provenance.added_by, replaced.provenance.added_at) == ("ann", created.provenance.added_at)
        assert replaced.provenance.updated_by == "bob"
        with pytest.raises(ChangedMeanwhileError) as refused:
            await store.replace(edited.key, new_skill(), created.digest, "ann")
        assert refused.value.digest == replaced.digest == edited.skill.digest
        with pytest.raises(ChangedMeanwhileError):
            await store.delete(edited.key, created.digest)
        assert await store.load() == (replaced,)
        await store.delete(edited.key, replaced.digest)
        assert await store.load() == ()

    async def test_the_key_is_the_name_with_the_access(self, open_store: OpenStore) -> None:
        store = open_store()
        anns, bobs = (new_skill(access=Access("personal", who)) for who in ("ann", "bob"))
        await store.create(anns, "ann")
        await store.create(bobs, "bob")
        with pytest.raises(AlreadyExistsError) as refused:
            await store.create(new_skill(description="Another.", access=anns.key.access), "ann")
        assert refused.value.digest == anns.skill.digest
        # A replacement may change the access, but not to a key that is taken.
        with pytest.raises(AlreadyExistsError):
            await store.replace(anns.key, bobs, None, "ann")
        shared = await store.replace(anns.key, new_skill(), None, "ann")
        assert {skill.access for skill in await store.load()} == {GLOBAL, bobs.key.access}
        assert shared.provenance.added_by == "ann"

    async def test_a_skill_that_does_not_exist_is_not_found(self, open_store: OpenStore) -> None:
        store, key = open_store(), SkillKey("absent")
        for missing in (
            store.get(key),
            store.content(key),
            store.delete(key, None),
            store.replace(key, new_skill("absent"), None, None),
        ):
            with pytest.raises(NotFoundError, match="no global skill absent"):
                await missing
        assert await store.load() == ()

    async def test_a_change_by_another_process_is_noticed(self, open_store: OpenStore) -> None:
        ours, theirs = open_store(), open_store()
        versions = [await ours.version()]
        created = await theirs.create(new_skill(), None)
        versions.append(await ours.version())
        await theirs.replace(SkillKey("rollback"), new_skill(description="Other."), created.digest, None)
        versions.append(await ours.version())
        await theirs.delete(SkillKey("rollback"), None)
        versions.append(await ours.version())
        assert len(set(versions)) == 4
        assert await ours.version() == versions[-1]

    async def test_of_concurrent_writers_exactly_one_wins(self, open_store: OpenStore) -> None:
        stores = [open_store() for _ in range(4)]
        results = await asyncio.gather(*(store.create(new_skill(), "ann") for store in stores), return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == [*["AlreadyExistsError"] * 3, "Skill"]
        digest = (await stores[0].get(SkillKey("rollback"))).digest
        edits = [new_skill(description=f"Edit {number}.") for number in range(4)]
        results = await asyncio.gather(
            *(store.replace(edit.key, edit, digest, "ann") for store, edit in zip(stores, edits, strict=True)),
            return_exceptions=True,
        )
        assert sorted(type(result).__name__ for result in results) == [*["ChangedMeanwhileError"] * 3, "Skill"]
