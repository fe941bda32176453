"""The files and the database that a server writes: can they be used? Asked before anything large is loaded."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.conversation_formats import (
    AGENT_CONVERSATIONS,
    CONVERSATIONS,
    FileFormat,
    check_format,
)
from ai_platform_engineering.storage.event_log.file import LogFile, tasks_file
from ai_platform_engineering.storage.event_log.log_database import check_log_database
from ai_platform_engineering.storage.sqlite.damage import advice, damaged_files
from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.utils.private_files import create_private_file, secure_data_dir

logger = logging.getLogger(__name__)

_DATABASES: Final = ("*.db", "*.sqlite")


class ConversationsFileError(SettingsError):
    def __init__(self, path: Path, error: Exception) -> None:
        super().__init__(
            f"{path} cannot be used to remember conversations: {reason(error)}. {advice(error)}, choose another "
            "directory with DATA_DIR, or set CONVERSATIONS=memory."
        )
        self.cause = error


def conversations_file(settings: Settings, agent: str = SUPERVISOR) -> Path:
    return settings.data_dir / ("conversations.db" if agent == SUPERVISOR else f"conversations-{agent}.db")


def conversations_format(agent: str = SUPERVISOR) -> FileFormat:
    return CONVERSATIONS if agent == SUPERVISOR else AGENT_CONVERSATIONS


def keeps_conversations(settings: Settings, agent: str = SUPERVISOR) -> bool:
    """Whether there is such a file. An agent's is of use only where its tasks are kept."""
    if agent == SUPERVISOR:
        return settings.checkpoint_type == "sqlite"
    return settings.conversations == "sqlite" and settings.event_log != "memory"


def check_data_files(settings: Settings, agent: str = SUPERVISOR) -> None:
    """Raise now what opening would raise later, when it is harder to say.

    Without its conversations file a server can start, with conversations in memory.
    """
    secure_data_dir(settings.data_dir)
    if settings.event_log == "sqlite":
        with closing(LogFile(tasks_file(settings, agent))) as file:
            file.check_pages()
    elif settings.event_log == "postgres":
        check_log_database(settings)
    if keeps_conversations(settings, agent):
        try:
            _check_conversations(conversations_file(settings, agent), agent)
        except ConversationsFileError:
            if settings.require_persistence:
                raise
    for problem in damaged_files(_other_databases(settings.data_dir)):
        logger.warning("%s", problem)


def _other_databases(directory: Path) -> list[Path]:
    """Databases without which a server starts: skills, memories, documents, feedback, push notifications, sandbox."""
    files = (path for pattern in _DATABASES for path in directory.glob(pattern))
    return [path for path in files if not path.name.startswith(("tasks", "conversations"))]


def _check_conversations(path: Path, agent: str) -> None:
    try:
        create_private_file(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            check_format(connection, path, conversations_format(agent))
    except (sqlite3.Error, OSError) as error:
        raise ConversationsFileError(path, error) from error
