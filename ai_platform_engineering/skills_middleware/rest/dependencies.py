"""Dependencies of the routes: the catalog, the settings, the verified caller, and shared parameters."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from ai_platform_engineering.identity.principal import Principal, caller_in
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.document import MAX_NAME_LENGTH, NAME_PATTERN
from ai_platform_engineering.skills_middleware.mutations import SkillChanges, requested_access
from ai_platform_engineering.skills_middleware.skill import Access, Visibility


def _catalog(request: Request) -> SkillCatalog:
    found = request.app.state.catalog
    assert isinstance(found, SkillCatalog)  # noqa: S101
    return found


def _settings(request: Request) -> Settings:
    found = request.app.state.settings
    assert isinstance(found, Settings)  # noqa: S101
    return found


def _caller(request: Request) -> Principal:
    return caller_in(request.scope.get("state"))


@dataclass(frozen=True, slots=True)
class RequestedSkillAccess:
    """The access in a request: it selects one of several skills of a name, or is the access of a new skill."""

    visibility: Annotated[Visibility | None, Query(description="Who can see the skill.")] = None
    team: Annotated[str | None, Query(max_length=200, description="The team of a team skill.")] = None

    def resolve(self, caller: Principal) -> Access | None:
        """The access for `caller`; None if the request has none. Raises `AccessError`."""
        if self.visibility is None and self.team is None:
            return None
        return requested_access(self.visibility or "team", self.team, caller)


def _crawl_slots(request: Request) -> asyncio.Semaphore:
    found = request.app.state.crawl_slots
    assert isinstance(found, asyncio.Semaphore)  # noqa: S101
    return found


Catalog = Annotated[SkillCatalog, Depends(_catalog)]
AppSettings = Annotated[Settings, Depends(_settings)]
CrawlSlots = Annotated[asyncio.Semaphore, Depends(_crawl_slots)]
VerifiedCaller = Annotated[Principal, Depends(_caller)]


def _changes(request: Request, catalog: Catalog, settings: AppSettings, caller: VerifiedCaller) -> SkillChanges:
    origin, audit = request.client.host if request.client else "", request.app.state.audit
    return SkillChanges(catalog, settings, caller, origin, audit)


Changes = Annotated[SkillChanges, Depends(_changes)]

Name = Annotated[str, Path(pattern=NAME_PATTERN, max_length=MAX_NAME_LENGTH, description="The name of the skill.")]
Selected = Annotated[RequestedSkillAccess, Depends()]
IncludeContent = Annotated[bool, Query(description="Whether to include the text of the files.")]
