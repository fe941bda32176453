"""The skills API on the supervisor's port: mounted at /, and built by its first request."""

from __future__ import annotations

from typing import Final

from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Scope

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.utils.rest.lazy import LazyApp

_PATHS: Final = frozenset({"/skills", "/openapi.json", "/docs"})
_PREFIXES: Final = ("/skills/", "/skill-hubs/", "/internal/supervisor/")


class SkillsMount(Mount):
    """To be the last route. It matches the paths of the API only: a mount at / that matched all of them would take the
    place of the app's own answers, 405 for a wrong method and the redirect for a trailing slash."""

    def __init__(self, catalog: SkillCatalog, settings: Settings) -> None:
        def build() -> ASGIApp:
            from ai_platform_engineering.skills_middleware.rest.app import create_rest  # noqa: PLC0415

            return create_rest(catalog, settings)

        super().__init__("/", LazyApp(build), name="skills")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        root = scope.get("root_path", "")
        if scope["type"] == "http" and is_skills_path(scope["path"].removeprefix(root)):
            # The answer is the same for every path, and a line break in one would not match a mount's pattern.
            return super().matches({**scope, "path": f"{root}/"})
        return Match.NONE, {}


def is_skills_path(path: str) -> bool:
    return path in _PATHS or path.startswith(_PREFIXES)
