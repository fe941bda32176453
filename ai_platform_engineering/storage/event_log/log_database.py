"""The Postgres database of the event log that the settings select. Imports the driver when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.installation import install_command
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.store_timer import NO_TIMER, StoreTimer

if TYPE_CHECKING:
    from ai_platform_engineering.storage.event_log.postgres.log import PostgresEventLog
    from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress


def postgres_log(settings: Settings, agent: str = SUPERVISOR, timer: StoreTimer = NO_TIMER) -> PostgresEventLog:
    """Raises if the driver is missing or the address cannot be parsed."""
    address = log_address(settings)
    from ai_platform_engineering.storage.event_log.postgres.log import PostgresEventLog  # noqa: PLC0415

    return PostgresEventLog(address, agent, timer)


def log_address(settings: Settings) -> LogAddress:
    url = settings.event_log_postgres_dsn.get_secret_value() if settings.event_log_postgres_dsn is not None else ""
    try:
        from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress  # noqa: PLC0415
    except ModuleNotFoundError:
        raise SettingsError(
            f"EVENT_LOG=postgres needs psycopg, which is not installed: {install_command('postgres')}."
        ) from None
    return LogAddress(url)


def check_log_database(settings: Settings) -> None:
    """Create or migrate the tables of the log and of its jobs, or raise an error with the reason and the way out."""
    address = log_address(settings)
    from ai_platform_engineering.storage.event_log.postgres.schema import LOG_SCHEMA  # noqa: PLC0415
    from ai_platform_engineering.storage.postgres.job_schema import JOB_SCHEMA  # noqa: PLC0415

    LOG_SCHEMA.prepare(address)
    JOB_SCHEMA.prepare(address)
