"""Private files: only the user that runs the product may read the files in its data directory."""

from __future__ import annotations

import errno
import logging
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from ai_platform_engineering.settings import SettingsError

logger = logging.getLogger(__name__)

_DIRECTORY_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
# The patterns include the WAL and journal files of SQLite.
_NAMES: Final = (
    "tasks.db*",
    "tasks-*.db*",
    "conversations.db*",
    "conversations-*.db*",
    "memories.db*",
    "audit.db*",
    "audit-*.db*",
    "audit*.head*",
    "usage.db*",
    "usage-*.db*",
    "push.db*",
    "push-*.db*",
    "knowledge.db*",
    "sandbox.db*",
    "skills",
    "skills.db*",
    "feedback.sqlite*",
    "slack.sqlite*",
    "chat.log",
    "chat_history",
    "delegation.key*",
    "session.key*",
    "policy.digest",
    "mcp-servers",
)


def make_private_directory(path: Path) -> None:
    """Create the directory if it does not exist, accessible for this user only."""
    path.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)


def create_private_file(path: Path) -> None:
    """Create the file if it does not exist, accessible for this user only. SQLite's other files get the same mode.

    An existing file is not opened: closing it would release the locks that SQLite holds on it in this process.
    """
    make_private_directory(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _FILE_MODE))
    except FileExistsError:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from None
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path) from None


def product_files(directory: Path) -> list[Path]:
    """The files in the data directory that belong to the product, by their names; none if it cannot be read."""
    try:
        return sorted(path for path in directory.iterdir() if is_product_file(path.name))
    except OSError:
        return []


def secure_data_dir(directory: Path) -> None:
    """Remove the access that earlier versions, or another umask, gave to other users.

    A directory that also contains other files keeps its mode. Raises `SettingsError` if a file stays readable.
    """
    try:
        mode, names = directory.stat().st_mode, sorted(path.name for path in directory.iterdir())
    except OSError:
        return  # it does not exist, or is reported when a file in it is opened
    ours = [name for name in names if is_product_file(name)]
    restricted = [name for name in ours if _restrict_file(directory / name)]
    if mode & _OTHERS:
        if len(ours) == len(names) and _restrict_directory(directory):
            restricted.append(".")
        else:
            logger.warning(
                "Other users may list %s (mode %04o), which this process does not own or which contains other files. "
                "Its files are private; `chmod 700` makes the directory private as well.",
                directory,
                stat.S_IMODE(mode),
            )
    if restricted:
        logger.warning("Other users could read files in %s. They no longer can: %s", directory, ", ".join(restricted))


def is_product_file(name: str) -> bool:
    """Whether the product stores a file of this name in the data directory."""
    return any(fnmatchcase(name, pattern) for pattern in _NAMES)


def _restrict_file(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) or not mode & _OTHERS:
            return False
        path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except FileNotFoundError:
        return False  # SQLite deletes WAL files when it closes a database
    except PermissionError:
        raise SettingsError(
            f"{path} can be read by other users and belongs to another one. Make the user of this process its owner, "
            "or choose another directory with DATA_DIR."
        ) from None
    return True


def _restrict_directory(directory: Path) -> bool:
    try:
        directory.chmod(_DIRECTORY_MODE)
    except PermissionError:
        return False
    return True
