"""The skills API on the supervisor's port, mounted at /. Its first request builds the app."""

from __future__ import annotations

from typing import Final

from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Scope

from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.utils.rest.asgi import LazyApp

_PATHS: Final = frozenset({"/skills", "/openapi.json", "/docs"})
_PREFIXES: Final = ("/skills/", "/skill-hubs/", "/internal/supervisor/")


class SkillsMount(Mount):
    """A mount at / that matches the paths of the API only. Add it as the last route.

    If it matched every path, it would replace the supervisor's own responses: 405 for a wrong method and the redirect
    for a trailing slash.
    """

    def __init__(self, catalog: SkillCatalog, settings: Settings, audit: Audit = NO_AUDIT) -> None:
        def build() -> ASGIApp:
            from ai_platform_engineering.skills_middleware.rest.app import create_rest  # noqa: PLC0415

            return create_rest(catalog, settings, audit)

        super().__init__("/", LazyApp(build), name="skills")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        root = scope.get("root_path", "")
        if scope["type"] == "http" and is_skills_path(scope["path"].removeprefix(root)):
            # The match is the same for every path, and the pattern of a mount does not match a line break in a path.
            return super().matches({**scope, "path": f"{root}/"})
        return Match.NONE, {}


def is_skills_path(path: str) -> bool:
    return path in _PATHS or path.startswith(_PREFIXES)
