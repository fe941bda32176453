"""One entry of an archive, and the limits for reading archives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.skills_middleware.skill import InvalidSkillError, SkillProblem

MAX_ARCHIVE_SIZE: Final = 1024 * 1024
"""Bytes of an archive as received."""
MAX_UNPACKED_SIZE: Final = 2 * 1024 * 1024
"""Bytes of a tar archive after decompression, headers and padding included."""
MAX_ENTRIES: Final = 256
"""Files, folders and the metadata entries that macOS adds, counted together."""

_MAX_RATIO: Final = 200
# Small texts and the padding of tar archives compress well.
_RATIO_FREE_SIZE: Final = 128 * 1024


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A file or folder. An entry that is refused has a `problem` and no data."""

    path: str
    is_folder: bool = False
    data: bytes = b""
    problem: SkillProblem | None = None


def refused(code: str, message: str, path: str = "") -> InvalidSkillError:
    """The error that refuses a whole archive."""
    return InvalidSkillError([SkillProblem(code, message, path)])


def corrupt(what: str) -> InvalidSkillError:
    return refused("corrupt_archive", f"the archive is corrupt or incomplete: {what}")


def check_ratio(unpacked: int, packed: int) -> None:
    """Refuse data whose compression ratio is higher than that of any text."""
    if unpacked > _RATIO_FREE_SIZE and unpacked > _MAX_RATIO * packed:
        raise refused(
            "decompression_bomb", f"the archive expands to more than {_MAX_RATIO} times its size, as no text does"
        )
