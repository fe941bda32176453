"""The state of the catalog, for people and programs that watch it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ai_platform_engineering.skills_middleware.problems import Problem
from ai_platform_engineering.skills_middleware.skill import SourceKind
from ai_platform_engineering.skills_middleware.view import Overridden


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """`count` skills were loaded at `loaded_at`, the last time the source could be read."""

    name: str
    kind: SourceKind
    count: int
    loaded_at: datetime | None
    commit: str | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """`total` counts the skills of all sources; `overridden` are those that another one of their name hides."""

    generation: int
    loaded_at: datetime | None
    total: int
    sources: tuple[SourceStatus, ...]
    overridden: tuple[Overridden, ...]
