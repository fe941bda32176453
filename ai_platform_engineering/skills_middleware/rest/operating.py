"""Routes for operators: refresh the sources, and the status of the catalog."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from fastapi import APIRouter
from pydantic import BaseModel, Field

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog, SourceStatus
from ai_platform_engineering.skills_middleware.mas_registry import get_mas_instance
from ai_platform_engineering.skills_middleware.rest.dependencies import AppSettings, Catalog, VerifiedCaller
from ai_platform_engineering.skills_middleware.rest.problems import answers
from ai_platform_engineering.skills_middleware.rest.views import OverriddenView, ProblemView
from ai_platform_engineering.skills_middleware.skill import SourceKind


class SourceView(BaseModel):
    name: str
    kind: SourceKind
    count: int = Field(description="All skills of the source, also those that the caller may not see.")
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


class CatalogStatusView(BaseModel):
    enabled: bool = Field(description="The value of ENABLE_SKILLS.")
    generation: int = Field(description="Incremented with every change of the catalog.")
    loaded_at: datetime | None
    total: int = Field(description="Skills of all sources.")
    visible: int = Field(description="Skills in effect for the caller.")
    sources: list[SourceView] = Field(description="In order of precedence; later sources override earlier ones.")
    overridden: list[OverriddenByName] = Field(description="Overridden skills that the caller may see.")
    mas_registered: bool = Field(description="Whether the supervisor of this process is registered.")
    graph_generation: int | None = Field(
        description="The generation that the supervisor's next turn uses. The graph reads the catalog at every turn."
    )
    skills_loaded_count: int | None = Field(
        description="Number of skills in the caller's next turn with the supervisor."
    )


router = APIRouter()


@router.post("/skills/refresh", summary="Load all sources again", responses=answers())
async def refresh(catalog: Catalog, settings: AppSettings, caller: VerifiedCaller) -> CatalogStatusView:
    """Fetches Git repositories too. Returns the status afterwards, with the problems of each source."""
    await catalog.refresh()
    return _status(catalog, caller, enabled=settings.enable_skills)


@router.get("/internal/supervisor/skills-status", summary="Status of the catalog", responses=answers())
async def status(catalog: Catalog, settings: AppSettings, caller: VerifiedCaller) -> CatalogStatusView:
    """The number of skills and the problems of each source, and the overridden skills."""
    await catalog.reload_changed()
    return _status(catalog, caller, enabled=settings.enable_skills)


def _status(catalog: SkillCatalog, caller: Principal, *, enabled: bool) -> CatalogStatusView:
    found = catalog.status(caller)
    mas = get_mas_instance()
    return CatalogStatusView(
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
