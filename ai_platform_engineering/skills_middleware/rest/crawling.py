"""The route that lists the skills of a Git repository, without storing them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.skills_middleware.rest.dependencies import AppSettings, CrawlSlots
from ai_platform_engineering.skills_middleware.rest.problems import answers
from ai_platform_engineering.skills_middleware.rest.views import ProblemView
from ai_platform_engineering.skills_middleware.sources.crawling import crawl


class CrawlRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["git", "github", "gitlab"] = Field(
        "git", description="The host for a location of the form `owner/name`."
    )
    location: str = Field(
        min_length=1, max_length=1000, description="An https:// address; for GitHub and GitLab also `owner/name`."
    )
    ref: str | None = Field(None, pattern=r"^[\w./+-]{1,200}$", description="A branch, tag or commit.")
    folder: str | None = Field(None, pattern="^[^@#]{1,200}$", description="Only skills below this folder.")

    @property
    def address(self) -> str:
        """The address in the format of SKILLS_GIT."""
        ref = f"@{self.ref}" if self.ref else ""
        return f"{self.location.strip()}{ref}" + (f"#{self.folder}" if self.folder else "")


class CrawledView(BaseModel):
    path: str
    name: str
    description: str


class Crawl(BaseModel):
    commit: str
    paths: list[str] = Field(description="The folders of the skills.")
    skills_preview: list[CrawledView]
    problems: list[ProblemView] = Field(description="Skills that cannot be used, and why.")


router = APIRouter()


@router.post(
    "/skill-hubs/crawl",
    summary="List the skills of a Git repository",
    responses=answers(HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.BAD_GATEWAY),
)
async def crawl_hub(body: CrawlRequest, settings: AppSettings, slots: CrawlSlots) -> Crawl:
    """Reads public repositories on the hosts in `SKILLS_CRAWL_HOSTS`, without storing their skills. To use the skills,
    add the repository to `SKILLS_GIT`."""
    async with slots:
        found = await crawl(settings, body.address, hub="gitlab" if body.type == "gitlab" else "github")
    return Crawl(
        commit=found.commit,
        paths=[skill.path for skill in found.skills],
        skills_preview=[
            CrawledView(path=skill.path, name=skill.name, description=skill.description) for skill in found.skills
        ],
        problems=ProblemView.all_of(found.problems),
    )
