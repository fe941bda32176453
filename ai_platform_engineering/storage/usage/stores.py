"""The store of usage that the settings ask for: usage is stored where the tasks are stored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.installation import install_command
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.usage.file import UsageFile
from ai_platform_engineering.storage.usage.store import UsageStore, UsageStoreError

if TYPE_CHECKING:
    from ai_platform_engineering.storage.usage.postgres import PostgresUsage

_NAME: Final = "counts of usage"


def usage_store(settings: Settings, agent: str = SUPERVISOR) -> UsageStore:
    if settings.event_log == "postgres":
        return _in_postgres(settings)
    return UsageFile(usage_file(settings, agent) if settings.event_log == "sqlite" else None)


def usage_file(settings: Settings, agent: str = SUPERVISOR) -> Path:
    return settings.data_dir / ("usage.db" if agent == SUPERVISOR else f"usage-{agent}.db")


async def check_up_usage(settings: Settings) -> StoreCheckup | None:
    """The row of `platform-engineer doctor`; None if usage is not stored."""
    if not settings.usage or settings.event_log == "memory":
        return None
    try:
        return await asyncio.to_thread(usage_store(settings).check_up, _NAME)
    except (SettingsError, UsageStoreError) as error:
        return StoreCheckup(_NAME, "postgres", "not usable").failed(str(error))


def _in_postgres(settings: Settings) -> PostgresUsage:
    try:
        from ai_platform_engineering.storage.usage.postgres import PostgresUsage, UsageAddress  # noqa: PLC0415
    except ModuleNotFoundError:
        raise SettingsError(
            f"EVENT_LOG=postgres needs psycopg, which is not installed: {install_command('postgres')}."
        ) from None
    dsn = settings.event_log_postgres_dsn
    return PostgresUsage(UsageAddress(dsn.get_secret_value() if dsn else ""))
