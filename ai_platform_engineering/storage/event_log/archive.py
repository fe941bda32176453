"""Stored tasks as the commands read them: from the file or the database of a log, while servers write to it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log import reader
from ai_platform_engineering.storage.event_log.conversations import ConversationPage, ConversationQuery
from ai_platform_engineering.storage.event_log.event_log import TaskQuery
from ai_platform_engineering.storage.event_log.file import open_for_reading, tasks_file
from ai_platform_engineering.storage.event_log.log_database import log_address
from ai_platform_engineering.storage.event_log.reader import Page
from ai_platform_engineering.storage.event_log.task_record import TaskRecord

if TYPE_CHECKING:
    from ai_platform_engineering.storage.event_log.postgres.reader import LogReader
    from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress

T = TypeVar("T")


class TaskArchive(Protocol):
    """The tasks of one server. `str()` is the place where they are stored."""

    def page(self, query: TaskQuery) -> Page: ...

    def record(self, task_id: str) -> TaskRecord | None: ...

    def times(self, task_id: str) -> list[int]:
        """The times of the task's creation and of each event, in nanoseconds since the epoch."""

    def find_ids(self, beginning: str) -> list[str]:
        """The task with this id; else at most two whose ids begin with it."""

    def find_conversations(self, beginning: str) -> list[str]:
        """The conversation with this id; else at most two whose ids begin with it."""

    def conversations(self, query: ConversationQuery) -> ConversationPage: ...


@contextmanager
def open_archive(settings: Settings, agent: str = SUPERVISOR) -> Iterator[TaskArchive]:
    """The tasks of the supervisor or of an agent. Raises `SettingsError` if they cannot be read."""
    if settings.event_log == "postgres":
        with _database(log_address(settings), agent) as archive:
            yield archive
    else:
        path = tasks_file(settings, agent)
        with closing(open_for_reading(path)) as connection:
            yield _FileArchive(path, connection)


class _FileArchive:
    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def __str__(self) -> str:
        return str(self._path)

    def page(self, query: TaskQuery) -> Page:
        return reader.read_page(self._connection, query)

    def record(self, task_id: str) -> TaskRecord | None:
        stored = reader.read_task(self._connection, task_id)
        return None if stored is None else stored.record

    def times(self, task_id: str) -> list[int]:
        return reader.read_times(self._connection, task_id)

    def find_ids(self, beginning: str) -> list[str]:
        return reader.find_ids(self._connection, beginning)

    def find_conversations(self, beginning: str) -> list[str]:
        return reader.find_conversations(self._connection, beginning)

    def conversations(self, query: ConversationQuery) -> ConversationPage:
        return reader.read_conversations(self._connection, query)


@contextmanager
def _database(address: LogAddress, server: str) -> Iterator[TaskArchive]:
    import psycopg  # noqa: PLC0415 - an extra

    from ai_platform_engineering.storage.event_log.postgres.reader import LogReader  # noqa: PLC0415
    from ai_platform_engineering.storage.postgres.async_connections import connect  # noqa: PLC0415

    with asyncio.Runner() as runner:
        try:
            connection = runner.run(connect(address.conninfo))
            try:
                yield _DatabaseArchive(address, LogReader(connection, server), runner)
            finally:
                runner.run(connection.close())
        except psycopg.Error as error:
            raise address.unusable(error) from error


class _DatabaseArchive:
    def __init__(self, address: LogAddress, reader: LogReader, runner: asyncio.Runner) -> None:
        self._address = address
        self._reader = reader
        self._runner = runner

    def __str__(self) -> str:
        return str(self._address)

    def page(self, query: TaskQuery) -> Page:
        return self._run(lambda: self._reader.page(query))

    def record(self, task_id: str) -> TaskRecord | None:
        found = self._run(lambda: self._reader.record(task_id))
        return None if found is None else found[1]

    def times(self, task_id: str) -> list[int]:
        return self._run(lambda: self._reader.times(task_id))

    def find_ids(self, beginning: str) -> list[str]:
        return self._run(lambda: self._reader.find_ids(beginning))

    def find_conversations(self, beginning: str) -> list[str]:
        return self._run(lambda: self._reader.find_conversations(beginning))

    def conversations(self, query: ConversationQuery) -> ConversationPage:
        return self._run(lambda: self._reader.conversations(query))

    def _run(self, query: Callable[[], Awaitable[T]]) -> T:
        async def run() -> T:
            return await query()

        return self._runner.run(run())
