"""The FastAPI app of the skills API."""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.installation import product_version
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.rest import changing, checking, crawling, operating, reading
from ai_platform_engineering.skills_middleware.rest.problems import STATUSES, handle_skill_problems
from ai_platform_engineering.utils.rest.asgi import BodyLimit, request_limit
from ai_platform_engineering.utils.rest.page import api_page
from ai_platform_engineering.utils.rest.problems import handle_problems

_DOCS: Final = "/docs"
_MAX_CRAWLS: Final = 2
"""Concurrent crawls. Each one runs Git and uses disk space."""
_DESCRIPTION: Final = (
    "List, read, create and change skills. Callers see the skills that they may use. Errors are problem JSON, except "
    "errors of the server's key and token check, which have the members `error` and `message`."
)


def create_rest(catalog: SkillCatalog, settings: Settings, audit: Audit = NO_AUDIT) -> FastAPI:
    app = FastAPI(
        title="Skills",
        description=_DESCRIPTION,
        version=product_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.catalog = catalog
    app.state.settings = settings
    app.state.audit = audit
    app.state.crawl_slots = asyncio.Semaphore(_MAX_CRAWLS)
    app.add_middleware(BodyLimit, limit=request_limit(settings))
    for part in (reading, changing, checking, crawling, operating):
        app.include_router(part.router)
    app.add_api_route(_DOCS, _docs, include_in_schema=False)
    handle_problems(app, STATUSES, _DOCS)
    handle_skill_problems(app)
    return app


async def _docs(request: Request) -> HTMLResponse:
    return HTMLResponse(api_page(request.app.openapi(), request.scope.get("root_path", "")))
