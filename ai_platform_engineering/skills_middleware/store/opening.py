"""Which store the settings select. Nothing is connected to here."""

from __future__ import annotations

from pathlib import Path

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.store.sqlite import SqliteSkillStore
from ai_platform_engineering.skills_middleware.store.store import SkillStore


def skills_file(settings: Settings) -> Path:
    return settings.data_dir / "skills.db"


def skill_store(settings: Settings) -> SkillStore:
    return SqliteSkillStore(skills_file(settings))
