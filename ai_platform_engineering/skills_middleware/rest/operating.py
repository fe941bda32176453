"""For operators: load the sources again, and the status of the catalog."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from fastapi import APIRouter
from pydantic import BaseModel, Field

from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.mas_registry import get_mas_instance
from ai_platform_engineering.skills_middleware.rest.dependencies import AppSettings, Catalog, VerifiedCaller
from ai_platform_engineering.skills_middleware.rest.problems import answers
from ai_platform_engineering.skills_middleware.rest.views import OverriddenView, ProblemView
from ai_platform_engineering.skills_middleware.skill import SourceKind
from ai_platform_engineering.skills_middleware.status import SourceStatus
from ai_platform_engineering.utils.a2a_common.caller import Caller


class SourceView(BaseModel):
    name: str
    kind: SourceKind
    count: int = Field(description="Skills of the source, those of other callers included.")
    loaded_at: datetime | None
    commit: str | None = Field(description="The commit of a Git repository.")
    problems: list[ProblemView]

    @classmethod
    def of(cls, status: SourceStatus) -> Self:
        return cls(
            name=status.name,
            kind=status.kind,
            count=status.count,
            loaded_at=status.loaded_at,
            commit=status.commit,
            problems=ProblemView.all_of(status.problems),
        )


class OverriddenByName(OverriddenView):
    name: str


class Status(BaseModel):
    enabled: bool = Field(description="False where ENABLE_SKILLS is false.")
    generation: int = Field(description="Grows with every change of the catalog.")
    loaded_at: datetime | None
    total: int = Field(description="Skills of all sources.")
    visible: int = Field(description="Skills in effect for the caller.")
    sources: list[SourceView] = Field(description="In the order in which they override each other.")
    overridden: list[OverriddenByName] = Field(description="Skills that the caller may see and that others override.")
    mas_registered: bool = Field(description="Whether the supervisor of this process is registered.")
    graph_generation: int | None = Field(
        description="The generation that the supervisor's next turn uses: the graph reads the catalog at every turn."
    )
    skills_loaded_count: int | None = Field(description="Skills of the supervisor's next turn, for the caller.")


router = APIRouter()


@router.post("/skills/refresh", summary="Load all sources again", responses=answers())
async def refresh(catalog: Catalog, settings: AppSettings, caller: VerifiedCaller) -> Status:
    """Fetches Git repositories too. Answers with the status afterwards, in which each source has its problems."""
    await catalog.refresh()
    return _status(catalog, caller, enabled=settings.enable_skills)


@router.get("/internal/supervisor/skills-status", summary="Status of the catalog", responses=answers())
async def status(catalog: Catalog, settings: AppSettings, caller: VerifiedCaller) -> Status:
    """Which skills each source has, which of them cannot be used, and which are overridden."""
    await catalog.settle()
    return _status(catalog, caller, enabled=settings.enable_skills)


def _status(catalog: SkillCatalog, caller: Caller, *, enabled: bool) -> Status:
    found = catalog.status(caller)
    mas = get_mas_instance()
    return Status(
        enabled=enabled,
        generation=found.generation,
        loaded_at=found.loaded_at,
        total=found.total,
        visible=len(catalog.view(caller).skills),
        sources=[SourceView.of(source) for source in found.sources],
        overridden=[
            OverriddenByName(name=hidden.skill.name, **OverriddenView.of(hidden).model_dump())
            for hidden in found.overridden
        ],
        mas_registered=mas is not None,
        graph_generation=mas.skills.generation if mas is not None else None,
        skills_loaded_count=len(mas.skills.view(caller).skills) if mas is not None else None,
    )
