"""The source of skills that were created through the API."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SourceKind
from ai_platform_engineering.skills_middleware.sources.source import (
    LoadedSkills,
    SkillGoneError,
    SkillSource,
    SourceUnavailableError,
)
from ai_platform_engineering.skills_middleware.store.store import NotFoundError, SkillKey, SkillStore, SkillStoreError


class ApiSource(SkillSource):
    name: Final = "api"
    kind: SourceKind = "api"

    def __init__(self, store: SkillStore) -> None:
        self._store = store
        self._version: str | None = None

    async def load(self) -> LoadedSkills:
        try:
            # The version is read first, so that a change between the two reads is loaded once more, not missed.
            version = await self._store.version()
            skills = await self._store.load()
        except SkillStoreError as error:
            self._version = None
            raise SourceUnavailableError(str(error)) from error
        self._version = version
        return LoadedSkills(skills)

    async def content(self, skill: Skill) -> SkillContent:
        try:
            return await self._store.content(SkillKey.of(skill))
        except NotFoundError as error:
            raise SkillGoneError(skill.name) from error
        except SkillStoreError as error:
            raise SourceUnavailableError(str(error)) from error

    async def changed(self) -> bool:
        try:
            return await self._store.version() != self._version
        except SkillStoreError as error:
            raise SourceUnavailableError(str(error)) from error
