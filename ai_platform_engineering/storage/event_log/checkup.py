"""The check of the supervisor's event log for `platform-engineer doctor`."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.checkup import IN_MEMORY, StoreCheckup, is_writable
from ai_platform_engineering.storage.event_log.file import LogFileError, open_for_reading, tasks_file, unusable
from ai_platform_engineering.storage.event_log.log_database import log_address

_NAME = "event log"


async def check_up_event_log(settings: Settings) -> StoreCheckup:
    match settings.event_log:
        case "memory":
            return StoreCheckup(_NAME, "memory", IN_MEMORY)
        case "sqlite":
            return await asyncio.to_thread(_check_file, settings)
        case "postgres":
            return await asyncio.to_thread(_check_database, settings)


def _check_file(settings: Settings) -> StoreCheckup:
    path = tasks_file(settings)
    found = StoreCheckup.of_file(_NAME, path)
    if not is_writable(path):
        return found.failed(str(unusable(path, PermissionError(0, "it cannot be written"))))
    if not found.exists:
        return found
    try:
        with closing(open_for_reading(path)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tasks,) = connection.execute("SELECT count(*) FROM task").fetchone()
    except LogFileError as error:
        return found.failed(str(error))
    except sqlite3.Error as error:
        return found.failed(str(unusable(path, error)))
    return found.opened(tasks=tasks, format=version)


def _check_database(settings: Settings) -> StoreCheckup:
    try:
        address = log_address(settings)
    except SettingsError as error:
        return StoreCheckup(_NAME, "postgres", "not usable").failed(str(error))
    from ai_platform_engineering.storage.event_log.postgres.schema import LOG_SCHEMA  # noqa: PLC0415 - an extra

    return LOG_SCHEMA.check_up(_NAME, address, "task", "tasks")
