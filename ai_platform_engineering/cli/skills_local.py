"""The skills of this machine behind the REST API, in this process: the command line has one way to skills."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
from starlette.types import Receive, Scope, Send

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.rest.app import create_rest
from ai_platform_engineering.utils.a2a_common.caller import ANONYMOUS, CALLER, KEY_HOLDER

_ORIGIN: Final = "command line"
"""The origin of skills that are added this way, in place of the address of a client."""


@asynccontextmanager
async def local_transport(settings: Settings) -> AsyncIterator[httpx.AsyncBaseTransport]:
    """The API over the sources and the data store that `settings` name. A user who can read the key holds it."""
    caller = KEY_HOLDER if settings.a2a_auth_shared_key is not None else ANONYMOUS
    catalog = SkillCatalog(settings)
    app = create_rest(catalog, settings)

    async def as_caller(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {CALLER: caller}}, receive, send)

    await catalog.start()
    try:
        yield httpx.ASGITransport(as_caller, client=(_ORIGIN, 0))
    finally:
        await catalog.aclose()
