"""Which store the settings select. Nothing is connected to here."""

from __future__ import annotations

from pathlib import Path

from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.skills_middleware.store.sqlite import SqliteSkillStore
from ai_platform_engineering.skills_middleware.store.store import SkillStore
from ai_platform_engineering.utils.extras import install_command


def skills_file(settings: Settings) -> Path:
    return settings.data_dir / "skills.db"


def skill_store(settings: Settings) -> SkillStore:
    """Raises `SettingsError` where the driver of the database is not installed."""
    if settings.skills_database_url is None:
        return SqliteSkillStore(skills_file(settings))
    try:
        from ai_platform_engineering.skills_middleware.store.postgres import PostgresSkillStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"SKILLS_DATABASE_URL needs {error.name}, which is not installed: {install_command('postgres')}. "
            "Without SKILLS_DATABASE_URL skills are stored in a file."
        ) from error
    return PostgresSkillStore(settings.skills_database_url.get_secret_value())
