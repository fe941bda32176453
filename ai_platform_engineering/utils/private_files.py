"""Private files: what the product writes into its data directory, only the user it runs as may read."""

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
# A name covers the files that SQLite keeps beside a database, too.
_NAMES: Final = (
    "tasks.db*",
    "tasks-*.db*",
    "conversations.db*",
    "conversations-*.db*",
    "knowledge.db*",
    "sandbox.db*",
    "skills",
    "skills.db*",
    "feedback.sqlite*",
    "slack.sqlite*",
    "chat.log",
    "chat_history",
    "delegation.key*",
)


def make_private_directory(path: Path) -> None:
    """Create the directory, for this user alone, if there is none."""
    path.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)


def create_private_file(path: Path) -> None:
    """Create the file, for this user alone, if there is none. SQLite gives its other files the mode of this one.

    A file that exists is not opened: closing it would release the locks that SQLite holds on it in this process.
    """
    make_private_directory(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _FILE_MODE))
    except FileExistsError:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from None
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path) from None


def secure_data_dir(directory: Path) -> None:
    """Take from other users what earlier versions, or another umask, let them read.

    A directory that also holds files of others keeps its mode: it is not ours to close. Raises `SettingsError` for a
    file that stays readable.
    """
    try:
        mode, names = directory.stat().st_mode, sorted(path.name for path in directory.iterdir())
    except OSError:
        return  # there is none yet; one that cannot be used is reported by the file that is opened in it
    ours = [name for name in names if any(fnmatchcase(name, pattern) for pattern in _NAMES)]
    tightened = [name for name in ours if _tightened(directory / name)]
    if mode & _OTHERS:
        if _close_directory(directory, only_ours=len(ours) == len(names)):
            tightened.append(".")
        else:
            logger.warning(
                "Other users may list %s (mode %04o), which this process does not own or which holds other files as "
                "well. Its files are private; `chmod 700` closes the directory, too.",
                directory,
                stat.S_IMODE(mode),
            )
    if tightened:
        logger.warning("Other users could read files in %s. They no longer can: %s", directory, ", ".join(tightened))


def _tightened(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) or not mode & _OTHERS:
            return False
        path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except FileNotFoundError:
        return False  # SQLite removes the files beside a database when it closes it
    except PermissionError:
        raise SettingsError(
            f"{path} can be read by other users and belongs to another one. Give it to the user that this process "
            "runs as, or choose another directory with DATA_DIR."
        ) from None
    return True


def _close_directory(directory: Path, *, only_ours: bool) -> bool:
    if not only_ours:
        return False
    try:
        directory.chmod(_DIRECTORY_MODE)
    except PermissionError:
        return False
    return True
