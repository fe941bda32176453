"""One entry of an archive, and the limits for reading archives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.skills_middleware.problems import InvalidSkillError, Problem

MAX_ARCHIVE_SIZE: Final = 1024 * 1024
"""Bytes of an archive as it is sent."""
MAX_UNPACKED_SIZE: Final = 2 * 1024 * 1024
"""Bytes of a tar archive without compression: its entries and the blocks around them."""
MAX_ENTRIES: Final = 256
"""Files, folders, and the entries that macOS adds."""

_MAX_RATIO: Final = 200
# Small texts and the padding of tar archives compress well.
_RATIO_FREE_SIZE: Final = 128 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """`problem` says why the entry is refused; it has no data then."""

    path: str
    is_folder: bool = False
    data: bytes = b""
    problem: Problem | None = None


def refused(code: str, message: str, path: str = "") -> InvalidSkillError:
    """The error that refuses a whole archive."""
    return InvalidSkillError([Problem(code, message, path)])


def corrupt(what: str) -> InvalidSkillError:
    return refused("corrupt_archive", f"the archive is corrupt or incomplete: {what}")


def check_ratio(unpacked: int, packed: int) -> None:
    """Refuse data that expand more than text does."""
    if unpacked > _RATIO_FREE_SIZE and unpacked > _MAX_RATIO * packed:
        raise refused(
            "decompression_bomb", f"the archive expands to more than {_MAX_RATIO} times its size, as no text does"
        )
